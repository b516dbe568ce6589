"""The Debian package of this checkout, and helpers for testing it."""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import tempfile
import time
from pathlib import Path

from dev.debian_package.deb import build_deb
from dev.distributions import ROOT, tracked_files
from tests.support.environments import CACHE, one_at_a_time
from tests.support.machine import Machine
from tests.support.running import printed

NAME = "platform-appliance"
_DAY_S = 86_400
# Our services that run before setup, and a program that requests a page of both apps.
WORKING = (
    "platform-control.socket",
    "platform-pwa.socket",
    "platform-pwa.service",
    "platform-wizard.socket",
    "platform-wizard.service",
)
_ANSWERS = """
import ssl, sys, urllib.request
for url in ("http://127.0.0.1:8089/healthz", "https://127.0.0.1:8088/healthz"):
    unverified = ssl._create_unverified_context() if url.startswith("https") else None
    print(urllib.request.urlopen(url, timeout=30, context=unverified).read().decode())
"""
# Files that are not in the package, and change most often.
_OTHERS = ("tests/", "bench/", "release/", "docs/screenshots/", ".github/")
_VERSION = re.compile(r"^Version: .*$", re.MULTILINE)


@functools.cache
def built_package() -> Path:
    """The package of the tracked files in their current state, built if it is not in the cache."""
    with one_at_a_time(CACHE / "package.lock"):
        folder = CACHE / f"package-{_state()}"
        if not folder.exists():
            _forget_old(CACHE)
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                build_deb(Path(scratch, "made"))
                Path(scratch, "made").rename(folder)
    (package,) = folder.glob("*.deb")
    return package


def unpacked(package: Path, folder: Path) -> Path:
    """Unpack a package into `folder`, with dpkg's files in DEBIAN."""
    printed("dpkg-deb", "--raw-extract", package, folder)
    return folder


def packed(tree: Path, version: str, target: Path) -> Path:
    """Build a package with the files in `tree` and another version, quickly."""
    control = tree / "DEBIAN/control"
    control.write_text(_VERSION.sub(f"Version: {version}", control.read_text()))
    printed("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, target)
    return target


def field(package: Path, name: str) -> str:
    """A field of the package's description."""
    return printed("dpkg-deb", "--field", package, name).strip()


def _state() -> str:
    """A digest of everything from which the package is built."""
    digest = hashlib.sha256()
    for name in sorted(tracked_files()):
        if not name.startswith(_OTHERS):
            digest.update(
                f"{name}\0".encode() + hashlib.sha256((ROOT / name).read_bytes()).digest()
            )
    return digest.hexdigest()[:12]


def _forget_old(cache: Path) -> None:
    for folder in cache.glob("package-*"):
        if time.time() - folder.stat().st_mtime > _DAY_S:
            shutil.rmtree(folder)


def both_answer(running: Machine) -> bool:
    """Whether the dashboard and the wizard report that they are healthy."""
    return running.run("python3", "-c", _ANSWERS).split() == ["ok", "ok"]
