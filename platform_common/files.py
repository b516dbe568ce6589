"""Files: the one way to write one whole, and the one way to open one we do not trust."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import PlatformError, UnreadableError

TEMPORARY_SUFFIX = ".tmp"


def temporary_name(name: str) -> str:
    """A hidden sibling of `name` that says which process is writing it."""
    return f".{name[:200]}.{os.getpid()}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"


def write_atomic(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put `data` at `path` with `mode`: a reader sees the old file or the new one.

    The bytes and the mode are on the disk before the name is, and the name
    before this returns. Raises `UnreadableError`, the old file then untouched.
    """
    write_atomic_together({path: data}, mode=mode)


def write_atomic_together(contents: dict[Path, bytes], *, mode: int = 0o644) -> None:
    """Like `write_atomic` for several files of one directory, renamed in the order given.

    All bytes are durable before the first name changes, so that running out of
    space changes nothing and the renames follow each other at once.
    """
    staged: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            temporary = path.with_name(temporary_name(path.name))
            staged[path] = temporary
            _write_durable(temporary, data, mode)
        with _signals_held():
            for path in list(staged):
                staged[path].replace(path)
                del staged[path]
        for directory in {path.parent for path in contents}:
            fsync_directory(directory)
    except OSError as error:
        raise UnreadableError.of(next(iter(staged), next(iter(contents))).parent, error) from error
    finally:
        for temporary in staged.values():
            with contextlib.suppress(OSError):
                temporary.unlink()


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def create_exclusive(path: Path, data: bytes, *, mode: int) -> None:
    """Write a new file durably; raises `PlatformError` when `path` exists already."""
    temporary = path.with_name(temporary_name(path.name))
    try:
        _write_durable(temporary, data, mode)
        os.link(temporary, path)
        fsync_directory(path.parent)
    except FileExistsError as error:
        raise PlatformError(f"{path} exists already and is not overwritten") from error
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _write_durable(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def fsync_directory(directory: Path) -> None:
    """Make the names in `directory` durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_regular(path: Path, *, follow_link: bool = True) -> Iterator[int]:
    """A read-only descriptor of a regular file; a FIFO, device or folder is refused.

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
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableError(f"{path} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a regular file that may hold `limit_bytes` at most.

    Raises `UnreadableError`, also when the file is missing or larger.
    """
    try:
        with open_regular(path) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(limit_bytes + 1)
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    if len(data) > limit_bytes:
        raise UnreadableError(f"{path} is larger than {limit_bytes:,} bytes")
    return data
