"""What heavy tests need in addition: locked environments and a kernel, created once and kept."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import time
import venv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from dev.distributions import ROOT
from tests.support.running import printed, run

# In the home of the user who runs the tests, for all checkouts.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "platform-appliance"
_NODE_FILES = (".npmrc", "package.json", "package-lock.json")
_KERNEL = "linux-image-cloud-amd64"


@contextlib.contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Let one of several test runs create something, while the others wait."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def environment_of(name: str) -> Path:
    """The environment of `requirements/<name>.txt` below `build/`, created if it does not exist."""
    requirements = ROOT / f"requirements/{name}.txt"
    recipe = requirements.read_bytes() + sys.version.encode()
    return _kept(name, recipe, partial(_install_python, requirements))


def node_modules(name: str) -> Path:
    """The packages of `requirements/<name>/package-lock.json` below `build/`, created if absent."""
    folder = ROOT / "requirements" / name
    recipe = b"".join((folder / file).read_bytes() for file in _NODE_FILES)
    return _kept(name, recipe, partial(_install_node, folder)) / "node_modules"


def kernel() -> Path:
    """The files of Debian's newest kernel package below `build/`, unpacked if missing.

    Unpacked and not installed: this machine does not boot it.
    """
    return _kept("kernel", _KERNEL.encode(), _unpack_kernel)


def _kept(name: str, recipe: bytes, make: Callable[[Path], None]) -> Path:
    target = ROOT / "build" / f"{name}-{hashlib.sha256(recipe).hexdigest()[:12]}"
    with one_at_a_time(target.with_name(f"{name}.lock")):
        done = target / "complete"
        if not done.exists():
            shutil.rmtree(target, ignore_errors=True)
            make(target)
            done.write_text(f"{time.time():.0f}\n")
    return target


def _install_python(requirements: Path, target: Path) -> None:
    venv.create(target, with_pip=True)
    pip = (target / "bin/python", "-m", "pip", "install", "--disable-pip-version-check")
    # Locked and binary only, because a bare machine has no compiler.
    exactly = ("--require-hashes", "--no-deps", "--only-binary", ":all:")
    printed(*pip, *exactly, "-r", requirements)


def _install_node(folder: Path, target: Path) -> None:
    target.mkdir()
    for file in _NODE_FILES:
        shutil.copy(folder / file, target)
    # No package may run its own scripts; the files are those of the lock file.
    install = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    printed(*install, cwd=target, env=os.environ | {"NO_UPDATE_NOTIFIER": "1"})


def _unpack_kernel(target: Path) -> None:
    target.mkdir()
    if run("apt-cache", "depends", _KERNEL).returncode:
        printed("apt-get", "update", "-qq")
    depends = printed("apt-cache", "depends", _KERNEL)
    # The real package behind the metapackage, such as linux-image-6.1.0-56-cloud-amd64.
    package = next(word for word in depends.split() if word.startswith("linux-image-6"))
    printed("apt-get", "download", "-qq", package, cwd=target)
    (archive,) = target.glob("*.deb")
    printed("dpkg-deb", "--extract", archive, target)
    archive.unlink()
