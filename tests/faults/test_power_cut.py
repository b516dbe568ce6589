"""A power cut: what was acknowledged is on the disk, whole and with its mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_common.appending import append_line
from platform_common.records import record_file
from tests.support.power_cut import Cut, cut, line, record
from tests.support.writers import MODE, OWNER, state


def lost(after: Cut) -> list[str]:
    """What is missing of what was acknowledged, and what is there but was never written."""
    files = state(after.folder) if after.folder.exists() else {}
    problems = []
    for name, data in files.items():
        if name.startswith("lines") and not (data == b"" or data.endswith(b"\n")):
            problems.append(f"{name} ends within a line")
    if files.get("record", b"") not in (record(after.records), record(after.records + 1)):
        problems.append("the record is another one")
    lines = b"".join(files[name] for name in _in_order(files)).splitlines()
    if lines not in [
        [line(number) for number in range(1, count + 1)] for count in (after.lines, after.lines + 1)
    ]:
        problems.append("the lines are other ones")
    return problems


def _in_order(files: dict[str, bytes]) -> list[str]:
    """The files put aside, then the one that grows."""
    return sorted(
        (name for name in files if name.startswith("lines")), key=lambda name: name[5:] or "~"
    )


@pytest.mark.parametrize("acknowledged", [1, 20, 150])
def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path, acknowledged: int) -> None:
    after = cut(tmp_path, acknowledged)
    assert lost(after) == []
    # What was in the making does not stand in the way.
    append_line(after.folder / "lines", b"next", mode=MODE, owner=OWNER)
    assert (after.folder / "lines").read_bytes().splitlines()[-1] == b"next"
    record_file.replace(after.folder / "record", b"next", mode=MODE, owner=OWNER)
    assert state(after.folder)["record"] == b"next"
    assert not [name for name in state(after.folder) if name.startswith(".record")]


@pytest.mark.parametrize(
    ("unsynced", "missed"),
    [
        ("files", ["the record is another one", "the lines are other ones"]),
        ("folders", ["the record is another one"]),
    ],
)
def test_a_writer_that_forgets_an_fsync_is_found_out(
    tmp_path: Path, unsynced: str, missed: list[str]
) -> None:
    # The next fsync, of another file, would save the record, so a cut may come too late.
    assert any(
        lost(cut(tmp_path / str(count), count, unsynced)) == missed
        for count in (12, 25, 9, 5, 18, 30)
    )
