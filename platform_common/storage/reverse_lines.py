"""Reads a file of lines from its end, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

from platform_common.errors import AccessError, access_error
from platform_common.storage.safe_read import open_regular

BLOCK_BYTES = 1 << 20
LINE_BYTES = 1 << 16
LIMIT_BYTES = 1 << 29


def blocks_from_end(
    path: Path, *, block_bytes: int = BLOCK_BYTES, limit_bytes: int = LIMIT_BYTES
) -> Generator[list[bytes]]:
    """Yield the lines of `path` without line feeds, block by block from the last to the first.

    Within a block they are in file order; empty lines are left out. Of a line longer than
    `LINE_BYTES` only the end may be included, which is still longer than that. Raises
    `FileNotFoundError`, and `AccessError`, also if more than `limit_bytes` are read.
    """
    with open_regular(path, follow_link=False, one_name=True) as descriptor, access_error(path):
        yield from _blocks(descriptor, path, block_bytes, limit_bytes)


def _blocks(
    descriptor: int, path: Path, block_bytes: int, limit_bytes: int
) -> Generator[list[bytes]]:
    end = size = os.fstat(descriptor).st_size
    begun = b""  # The rest of a line that starts before this block.
    while end:
        start = max(end - block_bytes, 0)
        if size - start > limit_bytes:
            raise AccessError(
                f"{path}: the requested lines are more than {limit_bytes:,} bytes before its end"
            )
        first, *lines = (os.pread(descriptor, end - start, start) + begun).split(b"\n")
        if not start:
            lines.insert(0, first)
        begun = first[-LINE_BYTES - 1 :]
        yield [line for line in lines if line]
        end = start
