"""Reads untrusted files: only regular ones, and never without a bound."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import AccessError, access_error

# Errors of opening a socket, a folder or a device.
_NOT_REGULAR = (errno.ENXIO, errno.EISDIR, errno.ENODEV)


@contextlib.contextmanager
def open_regular(path: Path, *, follow_link: bool = True, one_name: bool = False) -> Iterator[int]:
    """Open a regular file for reading; FIFOs, devices and folders are refused.

    With `one_name`, a file with a second hard link is refused too, because nobody may watch over
    that name. Raises `FileNotFoundError`, and `AccessError` for the rest.
    """
    descriptor = descriptor_of(path, follow_link=follow_link, one_name=one_name)
    try:
        yield descriptor
    finally:
        close(descriptor)


def descriptor_of(
    path: Path, flags: int = os.O_RDONLY, *, follow_link: bool = False, one_name: bool = True
) -> int:
    """Like `open_regular`, with `flags`; the caller closes the descriptor."""
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
            raise AccessError(f"{path} is a symbolic link, not a regular file") from error
        # On a file system mounted with nodev, opening a device fails like another user's file.
        if error.errno in _NOT_REGULAR or (error.errno == errno.EACCES and _is_odd(path)):
            raise AccessError(f"{path} is not a regular file") from error
        raise AccessError.of(path, error) from error
    return descriptor


def close(descriptor: int) -> None:
    """Close a file that is already safe or was only read, ignoring errors."""
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _is_odd(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return not stat.S_ISREG(path.stat().st_mode)
    return False


def _refuse_oddities(path: Path, status: os.stat_result, *, one_name: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise AccessError(f"{path} is not a regular file")
    if one_name and status.st_nlink > 1:
        raise AccessError(f"{path} is a hard link: the file has another name")


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """Read a regular file of at most `limit_bytes`.

    Raises `AccessError`, also if the file is missing or larger.
    """
    try:
        return read_own(path, limit_bytes, links=True)
    except FileNotFoundError as error:
        raise AccessError.of(path, error) from error


def read_own(path: Path, limit_bytes: int, *, links: bool = False) -> bytes:
    """Like `read_bounded`, but without `links` symbolic and hard links are refused.

    Raises `FileNotFoundError`.
    """
    with open_regular(path, follow_link=links, one_name=not links) as descriptor:
        return read_open(descriptor, path, limit_bytes)


def read_open(descriptor: int, path: Path, limit_bytes: int) -> bytes:
    """Read an open file from its start; `path` is for the message.

    Raises `AccessError`, also if it has more than `limit_bytes`.
    """
    with access_error(path), open(descriptor, "rb", closefd=False) as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise AccessError(f"{path} is larger than {limit_bytes:,} bytes")
    return data
