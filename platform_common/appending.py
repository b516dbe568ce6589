"""Files of lines that only grow: one durable line at a time."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import UnreadableError
from platform_common.files import ExistsError, Owner, create_exclusive, remove_left_overs
from platform_common.locks import hold


def append_line(path: Path, line: bytes, *, mode: int = 0o640, owner: Owner | None = None) -> None:
    """Add `line`, without its line feed, to the file at `path`, made if need be.

    When this returns, the line is on the disk, whole and on a line of its own,
    even behind one that a power cut tore. Raises `UnreadableError`, the file
    then as it was, or `LockedError`.
    """
    if b"\n" in line:
        raise ValueError("one line holds no line feed")
    try:
        with _locked_end(path, mode, owner) as descriptor:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            record = (b"\n" if torn else b"") + line + b"\n"
            try:
                if os.write(descriptor, record) != len(record):
                    raise UnreadableError(f"{path}: the disk took only a part of the line")
                os.fsync(descriptor)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
    except OSError as error:
        raise UnreadableError.of(path, error) from error


@contextlib.contextmanager
def _locked_end(path: Path, mode: int, owner: Owner | None) -> Iterator[int]:
    """A descriptor of the file that is at `path` now, locked, opened for appending."""
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            # Who comes second finds the file of who came first.
            with contextlib.suppress(ExistsError):
                create_exclusive(path, b"", mode=mode, owner=owner)
            continue
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnreadableError(f"{path} is not a regular file")
            hold(descriptor, path)
            # While we waited, the file may have been put aside and a new one made.
            if not _is_at(path, descriptor):
                continue
            _refuse_second_name(path, descriptor)
            yield descriptor
            return
        finally:
            os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _refuse_second_name(path: Path, descriptor: int) -> None:
    """Raise `UnreadableError` for a hard link, but not for one of a maker that was killed."""
    if os.fstat(descriptor).st_nlink > 1:
        remove_left_overs(path.parent, of_name=path.name, of_file=os.fstat(descriptor))
    if os.fstat(descriptor).st_nlink > 1:
        raise UnreadableError(f"{path} is a hard link, the same file as another name")
