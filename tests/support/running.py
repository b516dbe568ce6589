"""Programs that run to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def run(
    *argv: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    merged: bool = False,
    errors: str = "strict",
    timeout_s: float = 600,
    pass_fds: Sequence[int] = (),
) -> subprocess.CompletedProcess[str]:
    """How a program ends; if `merged`, what it prints as an error is with the rest."""
    return subprocess.run(
        argv,
        cwd=cwd,
        env=env,
        input=stdin or None,
        stdin=None if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        encoding="utf-8",
        errors=errors,
        timeout=timeout_s,
        pass_fds=pass_fds,
        check=False,
    )


def printed(*argv: str | Path, **how: Any) -> str:
    """What a program prints that is run so; it must succeed."""
    done = run(*argv, **how)
    if done.returncode:
        raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
