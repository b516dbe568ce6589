"""Removing what this process did not finish."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_common.storage.stale_files import temporary_name
from release_tools.left_overs import nothing_left_in


def test_left_overs_of_this_process_are_removed_if_the_block_fails(tmp_path: Path) -> None:
    other = ".f.1.01234567.tmp"
    for name in (temporary_name("f"), other):
        (tmp_path / name).touch()
    with pytest.raises(ZeroDivisionError), nothing_left_in(tmp_path, tmp_path / "none"):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == [other]
