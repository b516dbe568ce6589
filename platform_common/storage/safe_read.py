"""Reading files that we do not trust: only regular ones, and never without a bound."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import UnreadableError, unreadable

# What opening a socket, a folder or a device may answer.
_NOT_REGULAR = (errno.ENXIO, errno.EISDIR, errno.ENODEV)


@contextlib.contextmanager
def open_regular(path: Path, *, follow_link: bool = True, one_name: bool = False) -> Iterator[int]:
    """A read-only descriptor of a regular file; a FIFO, device or folder is refused.

    With `one_name` also a file that has a second name, which nobody may watch.
    Raises `FileNotFoundError` as it is and `UnreadableError` for the rest.
    """
    descriptor = descriptor_of(path, follow_link=follow_link, one_name=one_name)
    try:
        yield descriptor
    finally:
        close(descriptor)


def descriptor_of(
    path: Path, flags: int = os.O_RDONLY, *, follow_link: bool = False, one_name: bool = True
) -> int:
    """Like `open_regular`, opened with `flags` and left to the caller to close."""
    flags |= os.O_NONBLOCK | (0 if follow_link else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, 0o600)
        try:
            _refuse_oddities(path, os.fstat(descriptor), one_name=one_name)
        except BaseException:
            close(descriptor)
            raise
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP and not follow_link:
            raise UnreadableError(f"{path} is a symbolic link, not a regular file") from error
        # A device on a file system mounted without devices is refused like a file of another user.
        if error.errno in _NOT_REGULAR or (error.errno == errno.EACCES and _is_odd(path)):
            raise UnreadableError(f"{path} is not a regular file") from error
        raise UnreadableError.of(path, error) from error
    return descriptor


def close(descriptor: int) -> None:
    """Close a file whose content is safe, or was only read: no failure here says anything."""
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _is_odd(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return not stat.S_ISREG(path.stat().st_mode)
    return False


def _refuse_oddities(path: Path, status: os.stat_result, *, one_name: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError(f"{path} is not a regular file")
    if one_name and status.st_nlink > 1:
        raise UnreadableError(f"{path} is a hard link, the same file as another name")


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
    with open_regular(path, follow_link=links, one_name=not links) as descriptor:
        return read_open(descriptor, path, limit_bytes)


def read_open(descriptor: int, path: Path, limit_bytes: int) -> bytes:
    """The bytes of an open file from its beginning; `path` is for the message.

    Raises `UnreadableError`, also when they are more than `limit_bytes`.
    """
    with unreadable(path), open(descriptor, "rb", closefd=False) as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise UnreadableError(f"{path} is larger than {limit_bytes:,} bytes")
    return data
