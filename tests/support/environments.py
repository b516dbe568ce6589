"""Environments of their own for heavy programs that tests talk to: locked, made once, kept."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

from dev.distributions import ROOT


def environment_of(name: str) -> Path:
    """The environment of `requirements/<name>.txt` below `build/`, made when it is not there."""
    requirements = ROOT / f"requirements/{name}.txt"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    target = ROOT / "build" / f"{name}-{wanted}"
    target.parent.mkdir(exist_ok=True)
    # Several test runs may want it at once; the first makes it and the others wait.
    with (target.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = target / "complete"
        if not done.exists():
            shutil.rmtree(target, ignore_errors=True)
            venv.create(target, with_pip=True)
            pip = (target / "bin/python", "-m", "pip", "install", "--quiet")
            # Locked, and built already: a bare machine has no compiler.
            exactly = ("--require-hashes", "--no-deps", "--only-binary", ":all:")
            subprocess.run(
                [*pip, "--disable-pip-version-check", *exactly, "-r", requirements],
                check=True,
                stdin=subprocess.DEVNULL,
                timeout=300,
            )
            done.write_text(f"{time.time():.0f}\n")
    return target
