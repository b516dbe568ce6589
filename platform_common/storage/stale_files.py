"""Temporary files: their names, and removing those that a killed writer left behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Container, Iterator
from pathlib import Path

from platform_common.errors import AccessError

_NAME_LENGTH = 200
_TEMPORARY_NAME = re.compile(r"\.(?P<name>.+)\.(?P<process>[0-9]+)\.[0-9a-f]{8}\.tmp", re.DOTALL)


def temporary_name(name: str) -> str:
    """The name of a hidden temporary file for `name`, with this process's id."""
    return f".{name[:_NAME_LENGTH]}.{os.getpid()}.{os.urandom(4).hex()}.tmp"


def remove_left_overs(
    directory: Path,
    *,
    of_process: int | None = None,
    of_name: str | None = None,
    given_to: int | None = None,
) -> None:
    """Remove the temporary files that killed programs of this user left in `directory`.

    Files already given to the user `given_to` are removed too. Without `of_process`, the caller
    must be the only writer of these files. With `of_name`, only temporary files for that name are
    removed, and no folder. If `directory` does not exist, nothing happens. Raises
    `AccessError`.
    """
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                match = _TEMPORARY_NAME.fullmatch(entry.name)
                if (
                    match is not None
                    and of_process in (None, int(match["process"]))
                    and (of_name is None or match["name"] == of_name[:_NAME_LENGTH])
                ):
                    _remove_own(entry, {os.geteuid(), given_to}, folders=of_name is None)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise AccessError.of(directory, error) from error


def _remove_own(entry: os.DirEntry[str], users: Container[int | None], *, folders: bool) -> None:
    # Another process may have renamed it in the meantime.
    with contextlib.suppress(FileNotFoundError):
        if entry.stat(follow_symlinks=False).st_uid not in users:
            return
        if entry.is_file(follow_symlinks=False):
            Path(entry.path).unlink()
        elif folders and entry.is_dir(follow_symlinks=False):
            # Imported here: at the top it makes `platformctl version` miss its benchmark.
            import shutil

            shutil.rmtree(entry.path, ignore_errors=True)


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the end of the block."""
    # A signal mask is not enough: it applies to one thread, and Python runs handlers in the main
    # thread even if another thread received the signal.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            # None is a handler that was not set from Python, which cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for late in came:
            signal.raise_signal(late)
