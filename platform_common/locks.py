"""Locks between programs: one of them at a time changes a file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import PlatformError, UnreadableError
from platform_common.reading import close, descriptor_of

_WAIT_S = 10.0
_LOOK_AGAIN_S = 0.01


class LockedError(PlatformError):
    """Another program holds the lock, and did not let go of it in time."""


@contextlib.contextmanager
def changing(path: Path, *, wait_s: float = _WAIT_S) -> Iterator[None]:
    """Read, change and replace `path` without another program in between.

    The lock is on the file `.<name>.lock` beside it, which stays: `path` itself
    is another file after each change. Raises `LockedError` or `UnreadableError`.
    """
    lock = path.with_name(f".{path.name}.lock")
    try:
        descriptor = descriptor_of(lock, os.O_RDWR | os.O_CREAT)
    except FileNotFoundError as error:
        raise UnreadableError.of(path, error) from error
    except UnreadableError as error:
        said = f"{path} cannot be changed: {error.message}"
        raise UnreadableError(said, hint=error.hint) from error
    try:
        hold(descriptor, path, wait_s=wait_s)
        yield
    finally:
        close(descriptor)


def hold(descriptor: int, path: Path, *, wait_s: float = _WAIT_S) -> None:
    """Lock an open file until it is closed; `path` is for the message.

    Raises `LockedError` or `UnreadableError`.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockedError(
                    f"{path} is being changed by another program",
                    hint="Try again when that has ended.",
                ) from None
        except OSError as error:
            raise UnreadableError.of(path, error) from error
        time.sleep(_LOOK_AGAIN_S)
