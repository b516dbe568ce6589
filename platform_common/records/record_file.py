"""Records: the files in which a device stores what it knows about itself.

A record module has frozen types, `parse(data) -> R` and, if we write the record ourselves, the
reverse; it never touches a file. This module reads and writes the files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from platform_common.errors import PlatformError
from platform_common.formats.decode import DecodingError, utf8
from platform_common.paths import Found
from platform_common.storage.safe_read import read_own

if TYPE_CHECKING:
    from platform_common.storage.atomic_write import Owner

D = TypeVar("D")
R = TypeVar("R")
LIMIT_BYTES = 1 << 20
_LONGEST_LINE = 4096


class RecordError(PlatformError):
    """A record that cannot be used: `<file>: <place>: <what is wrong>`."""


class MissingRecordError(RecordError):
    """There is no such record on this device."""


def read(found: Found, parse: Callable[[bytes], R]) -> R:
    """Read the record at `found`; raises `RecordError` with the file and the place in it."""
    try:
        data = read_own(found.path, LIMIT_BYTES, links=found.shipped)
    except FileNotFoundError as error:
        raise MissingRecordError(f"{found.path}: there is no such file") from error
    except PlatformError as error:
        raise RecordError(error.message, hint=error.hint) from error
    return _parsed(found.path, parse, data)


def read_or(found: Found, parse: Callable[[bytes], R], default: D) -> R | D:
    """Like `read`; `default` when there is no such record."""
    try:
        return read(found, parse)
    except MissingRecordError:
        return default


def read_line(path: Path) -> str | None:
    """Read a one-line file, such as `active-profile`; None if there is none.

    Raises `RecordError`.
    """
    return read_or(Found(path), parse_line, None)


def parse_line(data: bytes) -> str:
    """Parse a one-line file; raises `PlatformError`."""
    line = utf8(data).removesuffix("\n")
    if not line or not line.isprintable() or line != line.strip() or len(line) > _LONGEST_LINE:
        raise DecodingError(
            f"must be one line of at most {_LONGEST_LINE:,} characters, without blanks around it"
        )
    return line


def replace(path: Path, data: bytes, *, mode: int, owner: Owner | None = None) -> None:
    """Write a whole new record to `path`."""
    edit(path, lambda _: data, mode=mode, owner=owner)


def edit(
    path: Path, change: Callable[[bytes | None], bytes], *, mode: int, owner: Owner | None = None
) -> None:
    """Replace the record at `path` by the result of `change` for its bytes (None: no file).

    A lock keeps other writers out, and temporary files of killed writers are removed. Raises
    `RecordError` and whatever the writing raises; the old record then stays.
    """
    # Imported here: at the top it makes `platformctl version` miss its benchmark.
    from platform_common.storage.atomic_write import make_folder, write_atomic
    from platform_common.storage.file_lock import changing
    from platform_common.storage.stale_files import remove_left_overs

    make_folder(path.parent)
    with changing(path):
        remove_left_overs(path.parent, of_name=path.name)
        try:
            before = read_own(path, LIMIT_BYTES)
        except FileNotFoundError:
            before = None
        after = _parsed(path, change, before)
        if len(after) > LIMIT_BYTES:
            raise RecordError(f"{path} would become larger than {LIMIT_BYTES:,} bytes")
        write_atomic(path, after, mode=mode, owner=owner)


def _parsed(path: Path, function: Callable[[D], R], data: D) -> R:
    try:
        return function(data)
    except RecordError:
        raise
    except PlatformError as error:
        raise RecordError(f"{path}: {error.message}", hint=error.hint) from error
