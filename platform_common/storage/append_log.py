"""Append-only files of lines: adds lines durably, one at a time, and can drop some."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from platform_common.errors import AccessError, access_error
from platform_common.storage.atomic_write import (
    ExistsError,
    Owner,
    confirm,
    create_exclusive,
    opened_folder,
    rename_to_free,
    write_atomic,
)
from platform_common.storage.file_lock import LockedError, changing, hold
from platform_common.storage.safe_read import close, descriptor_of, read_open
from platform_common.storage.stale_files import remove_left_overs

_TRIES = 100


def append_line(path: Path, line: bytes, *, mode: int = 0o640, owner: Owner | None = None) -> None:
    """Append `line`, without its line feed, to the file at `path`, creating it if necessary.

    When this returns, the line is on the disk, complete and on a line of its own, even after a
    line that a power cut tore. Raises `AccessError`, after which no line was added, or
    `LockedError`.
    """
    if b"\n" in line:
        raise ValueError("a line must not contain a line feed")
    for _ in range(_TRIES):
        with contextlib.suppress(FileNotFoundError), _locked(path) as descriptor:
            return _append(descriptor, path, line)
        _create(path, mode, owner)
    raise LockedError(f"{path} keeps being renamed by another program")


def put_aside(path: Path, to: Path) -> bool:
    """Rename the file at `path` to `to`, never in the middle of a line; False if there is none.

    The next line starts a new file. Raises `ExistsError` if `to` exists, `AccessError`, after
    which both files are unchanged, `NotDurableError` or `LockedError`.
    """
    try:
        with _locked(path):
            _rename(path, to)
    except FileNotFoundError:
        return False
    return True


def remove(path: Path) -> bool:
    """Remove the file at `path`, never in the middle of a line; False if there is none.

    The next line starts a new file. Raises `AccessError`, after which the file is unchanged,
    `NotDurableError` or `LockedError`.
    """
    try:
        with _locked(path), opened_folder(path.parent) as folder:
            os.unlink(path.name, dir_fd=folder)
            confirm(folder, f"{path} was removed")
    except FileNotFoundError:
        return False
    except OSError as error:
        raise AccessError.of(path, error) from error
    return True


def drop_lines(
    path: Path,
    unwanted: Callable[[bytes], bool],
    *,
    limit_bytes: int,
    mode: int = 0o640,
    owner: Owner | None = None,
) -> int:
    """Remove the lines for which `unwanted` is true; return how many.

    A reader sees the old file or the new one, which gets the given mode and owner; a line that is
    added at the same time stays. Raises `AccessError`, also for a file of more than
    `limit_bytes`, after which the file is unchanged, `NotDurableError` or `LockedError`.
    """
    if not _is_there(path):
        return 0
    # A process that creates the file holds this lock too, but not yet the file's own.
    with changing(path):
        remove_left_overs(path.parent, of_name=path.name)
        with contextlib.suppress(FileNotFoundError), _locked(path) as descriptor:
            kept, dropped = _split(read_open(descriptor, path, limit_bytes), unwanted)
            if dropped:
                write_atomic(path, kept, mode=mode, owner=owner)
            return dropped
    return 0


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise AccessError.of(path, error) from error
    return True


def _split(data: bytes, unwanted: Callable[[bytes], bool]) -> tuple[bytes, int]:
    """Return `data` without the unwanted lines, and how many there were."""
    lines = io.BytesIO(data).readlines()
    kept = [line for line in lines if not unwanted(line.removesuffix(b"\n"))]
    return b"".join(kept), len(lines) - len(kept)


def _rename(path: Path, to: Path) -> None:
    try:
        with opened_folder(to.parent) as target, opened_folder(path.parent) as source:
            rename_to_free(str(path), str(to))
            for folder in (target, source):
                confirm(folder, f"{path} is now {to}")
    except FileExistsError as error:
        raise ExistsError(f"{to} already exists and is not overwritten") from error
    except OSError as error:
        raise AccessError.of(to, error) from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open and lock the file at `path`; raises `FileNotFoundError`."""
    for _ in range(_TRIES):
        descriptor = descriptor_of(path, os.O_RDWR | os.O_APPEND)
        try:
            hold(descriptor, path)
            # The file may have been renamed or replaced while we waited for the lock.
            if _is_at(path, descriptor):
                yield descriptor
                return
        finally:
            close(descriptor)
    raise LockedError(f"{path} keeps being replaced by another program")


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise AccessError.of(path, error) from error


def _create(path: Path, mode: int, owner: Owner | None) -> None:
    with changing(path):
        remove_left_overs(path.parent, of_name=path.name)
        # A second process finds the file of the first.
        with contextlib.suppress(ExistsError):
            create_exclusive(path, b"", mode=mode, owner=owner, durable=False)


def _append(descriptor: int, path: Path, line: bytes) -> None:
    with access_error(path):
        size = os.fstat(descriptor).st_size
        if size == 0:
            # Its name may not be durable yet, for example if its creator was killed.
            with opened_folder(path.parent) as folder:
                os.fsync(folder)
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        record = (b"\n" if torn else b"") + line + b"\n"
        try:
            if os.write(descriptor, record) != len(record):
                raise AccessError(f"{path}: only a part of the line could be written")
            os.fsync(descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
