"""What a check finds, and the few ways of looking that checks share."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal, NamedTuple

from platform_common.process.run import Finished, run

NO_SYSTEMD = "systemd does not answer"
ROOT_ONLY = "only root may look"
# Where Debian keeps programs that are not on every user's PATH.
_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROGRAM_TIMEOUT_S = 4.0
_LIMIT_BYTES = 1 << 20


class Finding(NamedTuple):
    """How a check went; who makes a Warn or a Fail says what to do about it."""

    kind: Literal["Pass", "Warn", "Fail", "Skip"]
    detail: str = ""
    fix: str = ""


def passed(detail: str = "") -> Finding:
    """All is well."""
    return Finding("Pass", detail)


def warned(detail: str, fix: str) -> Finding:
    """It works, but not as it should."""
    return Finding("Warn", detail, fix)


def failed(detail: str, fix: str) -> Finding:
    """It does not work, or is not safe."""
    return Finding("Fail", detail, fix)


def skipped(detail: str) -> Finding:
    """There is nothing to look at, or we may not."""
    return Finding("Skip", detail)


def program(name: str) -> str | None:
    """Where the program is installed, or None."""
    return shutil.which(name, path=_FOLDERS)


def answer(*argv: str) -> Finished:
    """What a program says; raises `ProcessError`."""
    return run(argv, timeout_s=_PROGRAM_TIMEOUT_S)


def kernel_text(path: Path) -> str | None:
    """A small file of the kernel's, without blanks around it; None when it is not there."""
    try:
        with path.open("rb") as file:
            return file.read(_LIMIT_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None
