"""`make deb`: the Debian package of this project, the same bytes for the same commit.

It uses only Python's standard library, so that building packages needs no virtual environment.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from calendar import timegm
from collections.abc import Iterator
from pathlib import Path

from dev.distributions import ROOT, commit_time, copy_sources

_NAME = "platform-appliance"
_TIMEOUT_S = 600
_RELEASE = re.compile(r"^## (\d+\.\d+\.\d+)(\S*)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_POINT = re.compile(r"^- (.*?)(?=^- |^#|^$|\Z)", re.MULTILINE | re.DOTALL)
_MAINTAINER = re.compile(r"^Maintainer: (.*)$", re.MULTILINE)


def build_deb(output: Path, *, commit: str | None = None) -> Path:
    """Build the package of `commit`, or of the tracked files as they are; return its path.

    Prints what failed and raises `subprocess.CalledProcessError`.
    """
    with tempfile.TemporaryDirectory() as scratch:
        sources = Path(scratch, _NAME)
        copy_sources(sources, commit)
        (maintainer,) = _MAINTAINER.findall((sources / "debian/control").read_text("utf-8"))
        written = changelog((sources / "CHANGELOG.md").read_text("utf-8"), maintainer)
        (sources / "debian/changelog").write_text(written, "utf-8")
        _build(sources, commit_time(commit or "HEAD"))
        (made,) = Path(scratch).glob(f"{_NAME}_*.deb")
        output.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copyfile(made, output / made.name))


def changelog(text: str, maintainer: str) -> str:
    """Convert the text of our changelog to Debian's format.

    A version is the day of its release. With a suffix it is older than without, which Debian
    writes with a tilde.
    """
    return "\n".join(
        entry
        for version, suffix, points in _RELEASE.findall(text)
        for entry in _entry(version, suffix.replace("-", "~"), points, maintainer)
    )


def _entry(version: str, suffix: str, points: str, maintainer: str) -> Iterator[str]:
    day = time.gmtime(timegm(time.strptime(version, "%Y.%m.%d")))
    yield f"{_NAME} ({version}{suffix}) stable; urgency=medium\n"
    for point in _POINT.findall(points):
        words = " ".join(point.replace("`", "").split())
        yield textwrap.fill(words, 76, initial_indent="  * ", subsequent_indent="    ")
    yield f"\n -- {maintainer}  {time.strftime('%a, %d %b %Y %H:%M:%S +0000', day)}\n"


def _build(sources: Path, moment: int) -> None:
    finished = subprocess.run(
        ["dpkg-buildpackage", "--build=binary", "--unsigned-source", "--unsigned-changes"],
        cwd=sources,
        env=os.environ | {"SOURCE_DATE_EPOCH": str(moment)},
        umask=0o022,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    if finished.returncode:
        print(finished.stdout, file=sys.stderr)
    finished.check_returncode()


def main() -> None:
    """Build the package and print its size."""
    parser = argparse.ArgumentParser(prog="make deb", description="Build the Debian package.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="dist by default")
    parser.add_argument("--commit", help="the tracked files as they are by default")
    arguments = parser.parse_args()
    try:
        package = build_deb(arguments.output, commit=arguments.commit)
    except subprocess.CalledProcessError as error:
        raise SystemExit(error.returncode) from None
    told = subprocess.run(
        ["dpkg-deb", "--field", package, "Installed-Size"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
    )
    sizes = (package.stat().st_size / 2**20, int(told.stdout) / 2**10)
    print("{}: {:.1f} MiB, installed {:.1f} MiB".format(package, *sizes))


if __name__ == "__main__":
    main()
