"""Reading the lines of a file from its end."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.errors import AccessError
from platform_common.storage.reverse_lines import LINE_BYTES, blocks_from_end
from tests.support.properties import steady


def lines_of(path: Path, block_bytes: int) -> list[bytes]:
    """All lines, in the order of the file."""
    blocks = list(blocks_from_end(path, block_bytes=block_bytes))
    return [line for lines in reversed(blocks) for line in lines]


@steady
@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n\n", b"\r\n", b"\xff"])).map(b"".join),
    st.integers(1, 9),
)
def test_blocks_of_any_size_have_the_same_lines(data: bytes, block_bytes: int) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        found = lines_of(Path(file.name), block_bytes)
    assert found == [line for line in data.split(b"\n") if line]


def test_the_last_block_comes_first_and_others_are_read_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"old\n" * 1000 + b"new\n")
    assert next(blocks_from_end(path, block_bytes=8)) == [b"new"]


def test_only_part_of_an_overlong_line_is_kept_and_it_is_still_too_long(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"first\n" + b"x" * (10 * LINE_BYTES) + b'{"end": 1}\nlast\n')
    first, long, last = lines_of(path, LINE_BYTES // 3)
    assert (first, last) == (b"first", b"last")
    assert LINE_BYTES < len(long) < 3 * LINE_BYTES


def test_a_line_of_the_longest_allowed_length_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n" + b"x" * LINE_BYTES + b"\nb\n")
    assert [len(line) for line in lines_of(path, LINE_BYTES // 3)] == [1, LINE_BYTES, 1]


def test_an_endless_file_is_refused_quickly(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(AccessError, match="before its end"):
        list(blocks_from_end(path, limit_bytes=1 << 24))
