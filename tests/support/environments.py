"""What heavy tests need and no machine has: locked environments, a kernel; made once, kept."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dev.distributions import ROOT

_INSTALL_TIMEOUT_S = 300
_NODE_FILES = (".npmrc", "package.json", "package-lock.json")
_KERNEL = "linux-image-cloud-amd64"


def environment_of(name: str) -> Path:
    """The environment of `requirements/<name>.txt` below `build/`, made when it is not there."""
    requirements = ROOT / f"requirements/{name}.txt"
    recipe = requirements.read_bytes() + sys.version.encode()
    return _kept(name, recipe, partial(_install_python, requirements))


def node_modules(name: str) -> Path:
    """What `requirements/<name>/package-lock.json` pins, below `build/`, made when not there."""
    folder = ROOT / "requirements" / name
    recipe = b"".join((folder / file).read_bytes() for file in _NODE_FILES)
    return _kept(name, recipe, partial(_install_node, folder)) / "node_modules"


def kernel() -> Path:
    """The files of Debian's newest kernel package, below `build/`, unpacked when not there.

    Unpacked and not installed: this machine does not boot it.
    """
    return _kept("kernel", _KERNEL.encode(), _unpack_kernel)


def _kept(name: str, recipe: bytes, make: Callable[[Path], None]) -> Path:
    target = ROOT / "build" / f"{name}-{hashlib.sha256(recipe).hexdigest()[:12]}"
    target.parent.mkdir(exist_ok=True)
    # Several test processes may want it at once; the first makes it and the others wait.
    with (target.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = target / "complete"
        if not done.exists():
            shutil.rmtree(target, ignore_errors=True)
            make(target)
            done.write_text(f"{time.time():.0f}\n")
    return target


def _install_python(requirements: Path, target: Path) -> None:
    venv.create(target, with_pip=True)
    pip = (target / "bin/python", "-m", "pip", "install", "--quiet")
    # Locked, and built already: a bare machine has no compiler.
    exactly = ("--require-hashes", "--no-deps", "--only-binary", ":all:")
    subprocess.run(
        [*pip, "--disable-pip-version-check", *exactly, "-r", requirements],
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=_INSTALL_TIMEOUT_S,
    )


def _install_node(folder: Path, target: Path) -> None:
    target.mkdir()
    for file in _NODE_FILES:
        shutil.copy(folder / file, target)
    subprocess.run(
        # No package runs a program of its own; its bytes are those of the lock file.
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=target,
        env=os.environ | {"NO_UPDATE_NOTIFIER": "1"},
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=_INSTALL_TIMEOUT_S,
    )


def _unpack_kernel(target: Path) -> None:
    target.mkdir()

    def run(*argv: str | Path) -> str:
        done = subprocess.run(
            argv,
            cwd=target,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=_INSTALL_TIMEOUT_S,
        )
        return done.stdout

    try:
        depends = run("apt-cache", "depends", _KERNEL)
    except subprocess.CalledProcessError:
        run("apt-get", "update", "-qq")
        depends = run("apt-cache", "depends", _KERNEL)
    # The package that it stands for, such as linux-image-6.1.0-56-cloud-amd64.
    package = next(word for word in depends.split() if word.startswith("linux-image-6"))
    run("apt-get", "download", "-qq", package)
    (archive,) = target.glob("*.deb")
    run("dpkg-deb", "--extract", archive, ".")
    archive.unlink()
