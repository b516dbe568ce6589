"""Reading files that we do not trust: only regular ones, and never without a bound."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import UnreadableError


@contextlib.contextmanager
def open_regular(path: Path, *, follow_link: bool = True, one_name: bool = False) -> Iterator[int]:
    """A read-only descriptor of a regular file; a FIFO, device or folder is refused.

    With `one_name` also a file that has a second name, which nobody may watch.
    Raises `FileNotFoundError` as it is and `UnreadableError` for the rest.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow_link else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnreadableError(f"{path} is a symbolic link, not a regular file") from error
        raise UnreadableError.of(path, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError(f"{path} is not a regular file")
        if one_name and status.st_nlink > 1:
            raise UnreadableError(f"{path} is a hard link, the same file as another name")
        yield descriptor
    finally:
        os.close(descriptor)


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a regular file that may hold `limit_bytes` at most.

    Raises `UnreadableError`, also when the file is missing or larger.
    """
    try:
        return read_own(path, limit_bytes, links=True)
    except FileNotFoundError as error:
        raise UnreadableError.of(path, error) from error


def read_own(path: Path, limit_bytes: int, *, links: bool = False) -> bytes:
    """Like `read_bounded`, for a file of the device: without `links`, no link of either kind.

    Raises `FileNotFoundError` as it is.
    """
    try:
        with (
            open_regular(path, follow_link=links, one_name=not links) as descriptor,
            os.fdopen(os.dup(descriptor), "rb") as file,
        ):
            data = file.read(limit_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    if len(data) > limit_bytes:
        raise UnreadableError(f"{path} is larger than {limit_bytes:,} bytes")
    return data
