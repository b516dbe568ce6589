"""Makes small artefacts of every kind with the tools that make real ones.

A root filesystem holding this project is packed as a disk image, a compressed
image and an archive; a fourth artefact is a reference. Files that exist are kept.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MODIFIED = 1_793_491_200  # 2026-11-01
_IMAGE_SIZE = "32M"
_TIMEOUT_S = 300


def main() -> None:
    """Make the missing files in the given folder."""
    if len(sys.argv) != 4:
        raise SystemExit("usage: artefacts.py FOLDER VERSION CHANNEL")
    folder, version, channel = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".samples-") as scratch:
        for profile, target, extension, make in SAMPLES:
            filename = f"platform-{profile}-{target}-{version}-{channel}.{extension}"
            artefact = folder / filename
            if artefact.exists():
                print(f"kept  {filename}", flush=True)
                continue
            made = Path(scratch) / filename
            make(made)
            made.replace(artefact)
            print(f"made  {filename}, {artefact.stat().st_size:,} bytes", flush=True)


def _qcow2(artefact: Path) -> None:
    image = _ext4(artefact.parent)
    _run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", image, artefact)


def _img_xz(artefact: Path) -> None:
    image = _ext4(artefact.parent)
    _run("xz", "--keep", "--threads=1", "--suffix=.xz", image)
    image.with_name(f"{image.name}.xz").replace(artefact)


def _tar_gz(artefact: Path) -> None:
    owner = ("--owner=0", "--group=0", "--numeric-owner")
    order = ("--sort=name", f"--mtime=@{_MODIFIED}", "--use-compress-program=gzip -n")
    _run("tar", "-c", *owner, *order, "-f", artefact, "-C", _root_filesystem(artefact.parent), ".")


def _oci(artefact: Path) -> None:
    # The reference is shown and never fetched, so it need not exist.
    digest = hashlib.sha256(artefact.name.encode()).hexdigest()
    artefact.write_text(f"oci://registry.example/platform/openclaw@sha256:{digest}\n")


SAMPLES: tuple[tuple[str, str, str, Callable[[Path], None]], ...] = (
    ("openclaw", "qemu-x86_64", "qcow2", _qcow2),
    ("hermes", "rpi5", "img.xz", _img_xz),
    ("khoj", "wsl2", "tar.gz", _tar_gz),
    ("openclaw", "fly-machines", "oci", _oci),
)


def _ext4(scratch: Path) -> Path:
    image = scratch / "root.img"
    if not image.exists():
        content = ("-L", "platform", "-E", "root_owner=0:0", "-d", _root_filesystem(scratch))
        _run("mkfs.ext4", "-q", *content, image, _IMAGE_SIZE)
    return image


def _root_filesystem(scratch: Path) -> Path:
    root = scratch / "root"
    if root.exists():
        return root
    texts = {
        "etc/hostname": "appliance\n",
        "etc/os-release": 'ID=platform\nPRETTY_NAME="Platform sample"\n',
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for package in ("platform_common", "release_tools", "schemas"):
        shutil.copytree(
            ROOT / package,
            root / "opt/platform" / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (_MODIFIED, _MODIFIED))
    return root


def _run(name: str, *arguments: str | Path) -> None:
    # Everyone may run mkfs.ext4, but its folder is only on root's PATH.
    program = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if program is None:
        raise SystemExit(f"{name} is not installed: see README.md, 'What it needs'.")
    print(f"      {shlex.join([name, *map(str, arguments)])}", flush=True)
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    try:
        subprocess.run([program, *arguments], env=environment, timeout=_TIMEOUT_S, check=True)
    except subprocess.SubprocessError as error:
        raise SystemExit(f"{name} failed: {error}") from error


if __name__ == "__main__":
    main()
