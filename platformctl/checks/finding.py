"""The result of a check, and functions that checks share."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal, NamedTuple

from platform_common.process.run import Finished, run

NO_SYSTEMD = "systemd does not answer"
ROOT_ONLY = "only root can check this"
# Where Debian keeps programs that are not on every user's PATH.
_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROGRAM_TIMEOUT_S = 4.0
_LIMIT_BYTES = 1 << 20


class Finding(NamedTuple):
    """The result of a check; every Warn and Fail has a `fix`."""

    kind: Literal["Pass", "Warn", "Fail", "Skip"]
    detail: str = ""
    fix: str = ""


def passed(detail: str = "") -> Finding:
    """The check found no problem."""
    return Finding("Pass", detail)


def warned(detail: str, fix: str) -> Finding:
    """It works, but not as it should."""
    return Finding("Warn", detail, fix)


def failed(detail: str, fix: str) -> Finding:
    """It does not work, or is not safe."""
    return Finding("Fail", detail, fix)


def skipped(detail: str) -> Finding:
    """There is nothing to check, or this user may not check it."""
    return Finding("Skip", detail)


def program(name: str) -> str | None:
    """Where the program is installed, or None."""
    return shutil.which(name, path=_FOLDERS)


def answer(*argv: str) -> Finished:
    """Run a program and return its output; raises `ProcessError`."""
    return run(argv, timeout_s=_PROGRAM_TIMEOUT_S)


def kernel_text(path: Path) -> str | None:
    """The stripped text of a small kernel file; None if it does not exist."""
    try:
        with path.open("rb") as file:
            return file.read(_LIMIT_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None
