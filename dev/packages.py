"""The Debian packages that a verb of the Makefile needs: found, installed, or named.

Run with Debian's own Python before there is any environment, so it uses the
standard library alone: `python3 dev/packages.py VERB`.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_PYTHON = (3, 11)
_TIMEOUT_S = 900
# Where Debian keeps programs that are not on every user's PATH.
_MORE_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")

# Package to a sign that it is installed: a program, a file, or a Python module.
SIGNS = {
    "alsa-utils": "arecord",
    "build-essential": "g++",
    "ca-certificates": "/etc/ssl/certs/ca-certificates.crt",
    "chromium": "/usr/bin/chromium",
    "curl": "curl",
    "debhelper": "dh",
    "default-jre-headless": "java",
    "dpkg-dev": "dpkg-buildpackage",
    "e2fsprogs": "mkfs.ext4",
    "faketime": "faketime",
    "fonts-dejavu-core": "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "fonts-liberation": "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
    "fonts-noto-core": "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
    "fonts-noto-mono": "/usr/share/fonts/truetype/noto/NotoSansMono-Regular.ttf",
    "fonts-opendyslexic": "/usr/share/fonts/opentype/opendyslexic/OpenDyslexicMono-Regular.otf",
    "git": "git",
    "iproute2": "ip",
    "lintian": "lintian",
    "man-db": "man",
    "mandoc": "mandoc",
    "minisign": "minisign",
    "mmdebstrap": "mmdebstrap",
    "nginx-light": "nginx",
    "nodejs": "node",
    "npm": "npm",
    "openssh-client": "ssh-keygen",
    "openssl": "openssl",
    "python3": "/usr/bin/python3",
    "python3-pip": "/usr/lib/python3/dist-packages/pip",
    "python3-venv": "module:ensurepip",
    "qemu-system-x86": "qemu-system-x86_64",
    "qemu-utils": "qemu-img",
    "rclone": "rclone",
    "strace": "strace",
    "systemd": "systemd-socket-activate",
    "systemd-container": "systemd-nspawn",
    "systemd-journal-remote": "/lib/systemd/systemd-journal-remote",
    "wrk": "wrk",
    "xz-utils": "xz",
}
_IMAGES = ("ca-certificates", "e2fsprogs", "python3-venv", "qemu-utils", "xz-utils")
_FONTS = (
    *("fonts-dejavu-core", "fonts-liberation", "fonts-noto-core", "fonts-noto-mono"),
    "fonts-opendyslexic",
)
_PACKAGE = ("build-essential", "debhelper", "dpkg-dev", "git", "python3", "python3-pip")
NEEDS: Mapping[str, Sequence[str]] = {
    "run": _IMAGES,
    "deb": _PACKAGE,
    "wizard": ("ca-certificates", "python3-venv"),
    "test": (
        *_IMAGES,
        *_PACKAGE,
        *_FONTS,
        "alsa-utils",
        "chromium",
        "curl",
        "default-jre-headless",
        "faketime",
        "iproute2",
        "lintian",
        "man-db",
        "mandoc",
        "minisign",
        "mmdebstrap",
        "nginx-light",
        "nodejs",
        "npm",
        "openssh-client",
        "openssl",
        "qemu-system-x86",
        "rclone",
        "strace",
        "systemd",
        "systemd-container",
        "systemd-journal-remote",
    ),
    "bench": (
        *_PACKAGE,
        "chromium",
        "iproute2",
        "minisign",
        "mmdebstrap",
        "nodejs",
        "npm",
        "openssl",
        "systemd-container",
        "wrk",
    ),
    "test-fresh": ("ca-certificates", "git", "mmdebstrap"),
    "screenshots": ("chromium", "fonts-noto-core", "systemd-journal-remote"),
}


def missing(packages: Sequence[str]) -> list[str]:
    """The packages that do not seem to be installed."""
    return sorted(package for package in packages if not _present(SIGNS[package]))


def _present(sign: str) -> bool:
    if sign.startswith("module:"):
        return importlib.util.find_spec(sign.removeprefix("module:")) is not None
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *_MORE_FOLDERS))
    return Path(sign).exists() if sign.startswith("/") else bool(shutil.which(sign, path=folders))


def install(packages: Sequence[str]) -> None:
    """Install Debian packages; raises what `subprocess.run` raises."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", *packages],
    ):
        print("$", shlex.join(command), flush=True)
        subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S, check=True
        )


def main(arguments: Sequence[str], *, root: bool) -> int:
    """Install what the verb needs, or name it; return the exit code."""
    if len(arguments) != 1 or arguments[0] not in NEEDS:
        print(f"usage: python3 dev/packages.py {'|'.join(NEEDS)}", file=sys.stderr)
        return 2
    if sys.version_info < _PYTHON:
        seen, wanted = (".".join(map(str, version)) for version in (sys.version_info[:2], _PYTHON))
        print(f"This is Python {seen}, and {wanted} is the oldest that will do.", file=sys.stderr)
        return 1
    wanting = missing(NEEDS[arguments[0]])
    if not wanting:
        return 0
    if not root:
        print(
            f"`make {arguments[0]}` needs {len(wanting)} more Debian packages. Install them with:\n"
            "  sudo apt-get update && sudo apt-get install --no-install-recommends "
            + " ".join(wanting),
            file=sys.stderr,
        )
        return 1
    try:
        install(wanting)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"The Debian packages {', '.join(wanting)} are needed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], root=os.geteuid() == 0))
