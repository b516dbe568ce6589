"""Running programs to their end."""

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
    """Run a program to its end; if `merged`, its error messages are part of the output."""
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
    """The output of a program, which must succeed."""
    done = run(*argv, **how)
    if done.returncode:
        raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
