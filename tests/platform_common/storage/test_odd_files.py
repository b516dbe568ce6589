"""Functions that read, change or append to a file accept only a regular file with one name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from platform_common.errors import PlatformError
from platform_common.paths import Found
from platform_common.records import record_file
from platform_common.storage.append_log import append_line, drop_lines, put_aside
from platform_common.storage.atomic_write import Owner
from platform_common.storage.reverse_lines import blocks_from_end
from platform_common.storage.safe_read import read_own
from tests.support.odd_files import LINKS, NOT_REGULAR, make, picture

ROOT = Owner("root", "root")
USES: dict[str, Callable[[Path], object]] = {
    "add a line": lambda path: append_line(path, b"line"),
    "drop lines": lambda path: drop_lines(path, b"precious".__eq__, limit_bytes=99),
    "put it aside": lambda path: put_aside(path, path.with_name("aside")),
    "read it": lambda path: read_own(path, 10),
    "read it from its end": lambda path: list(blocks_from_end(path)),
    "read a record": lambda path: record_file.read(Found(path), bytes),
    "replace a record": lambda path: record_file.replace(path, b"x", mode=0o640, owner=ROOT),
}


@pytest.mark.parametrize("kind", [*NOT_REGULAR, *LINKS])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_fs_07_anything_but_a_regular_file_with_one_name_is_refused_and_unchanged(
    tmp_path: Path, use: Callable[[Path], object], kind: str
) -> None:
    path = make(kind, tmp_path / "f")
    before = picture(tmp_path)
    with pytest.raises(PlatformError, match=f"^{path} is "):
        use(path)
    after = picture(tmp_path)
    after.pop(".f.lock", None)
    assert after == before


@pytest.mark.parametrize("use", ["read it", "read it from its end"])
def test_a_missing_file_is_reported_as_missing(tmp_path: Path, use: str) -> None:
    with pytest.raises(FileNotFoundError):
        USES[use](tmp_path / "none")
