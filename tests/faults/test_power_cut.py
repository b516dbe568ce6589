"""Power cuts: what was acknowledged is on the disk, complete and with its mode.

Once while every file of the device is written, and once during setup, which one more press must
complete.
"""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.faults.power_cut import Cut, cut_machine
from tests.faults.power_cut_guest import line, record, writers
from tests.support.apply_setups import (
    FULL,
    KEY,
    STATE,
    Tree,
    answer,
    left_overs,
    press_once_more,
    result,
    started,
    wizard_of,
    wrong,
)
from wizard_app.chat.history import ChatHistory
from wizard_app.setup.apply.journal import read_attempt
from wizard_app.setup.state_file import StateFile
from wizard_app.setup.steps import STEPS

pytestmark = pytest.mark.long

_CUTS = 50
_MODES = {
    "journal": 0o660,
    "home/.ssh/keys": 0o600,
    "chat": 0o640,
    STATE: 0o600,
    "record": 0o640,
    "lines": 0o640,
}


def _journal(folder: Path) -> object:
    last = read_attempt(folder / "journal")
    return sorted(int(entry.why or 0) for entry in last.entries) if last else [0, 0, 0]


def _keys(folder: Path) -> object:
    path = folder / "home/.ssh/keys"
    return path.read_text().splitlines() if path.exists() else []


def _chat(folder: Path) -> object:
    return [int(one.content.split()[0]) for one in ChatHistory(folder / "chat").last()][-3:]


def _state(folder: Path) -> object:
    return StateFile(folder / STATE, STEPS).load().answers.values.get("hostname", "box-0")


def _record(folder: Path) -> object:
    path = folder / "record"
    return path.read_bytes() if path.exists() else b""


def _lines(folder: Path) -> object:
    # The files that were put aside come before the current one.
    paths = sorted(folder.glob("lines*"), key=lambda path: path.name[5:] or "~")
    return b"".join(path.read_bytes() for path in paths if path.suffix != ".lock").splitlines()


# For each writer: how to read its file, and the expected content after n writes.
FOUND: Mapping[str, tuple[Callable[[Path], object], Callable[[int], object]]] = {
    "journal": (_journal, lambda n: [max(0, one) for one in range(n - 2, n + 1)]),
    "keys": (_keys, lambda n: [f"{KEY}-{one}" for one in range(1, n + 1)]),
    "chat": (_chat, lambda n: [one for one in range(n - 2, n + 1) if one > 0]),
    "state": (_state, lambda n: f"box-{n}"),
    "record": (_record, lambda n: record(n) if n else b""),
    "lines": (_lines, lambda n: [line(one) for one in range(1, n + 1)]),
}


def _said(cut: Cut) -> Mapping[str, Sequence[list[str]]]:
    """The words of each line after its first one, grouped by the first one."""
    found = defaultdict(list)
    for said in cut.said:
        first, *words = said.split()
        found[first].append(words)
    return found


def lost(folder: Path, cut: Cut) -> set[str]:
    """The writers whose files lack something acknowledged, or contain something never written."""
    said = _said(cut)
    problems = {
        name
        for name, mode in _MODES.items()
        if (folder / name).exists() and stat.S_IMODE((folder / name).stat().st_mode) != mode
    }
    for name, (read, wanted) in FOUND.items():
        number = int(said[name][-1][0]) if said[name] else 0
        if read(folder) not in (wanted(number), wanted(number + 1)):
            problems.add(name)
    return problems


def test_fifty_power_cuts_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with cut_machine(tmp_path / "machine", "write") as machine:
        for number in range(_CUTS):
            cut = machine.cut(at_once=number % 2 == 0)
            folder = cut.files(tmp_path / f"found-{number}")
            assert lost(folder, cut) == set()
            # Incomplete files do not prevent further writes.
            for write in writers(folder).values():
                write(1_000_000)
            assert not list(folder.rglob(".*.tmp"))
    # The machine continued to write between the cuts.
    assert len(_said(cut)["lines"]) > _CUTS // 5


@pytest.mark.parametrize(
    ("unsynced", "wanted"),
    [
        ("files", {"journal", "keys", "chat", "state", "record", "lines"}),
        ("folders", {"keys", "state", "record"}),
    ],
)
def test_a_missing_fsync_is_detected(tmp_path: Path, unsynced: str, wanted: set[str]) -> None:
    found: set[str] = set()
    with cut_machine(tmp_path / "machine", "write", unsynced) as machine:
        for number in range(_CUTS):
            cut = machine.cut(at_once=True)
            found |= lost(cut.files(tmp_path / f"found-{number}"), cut)
            if found >= wanted:
                return
    assert found >= wanted


@pytest.fixture
def after(tmp_path: Path) -> Tree:
    """The state of a device after an undisturbed setup."""
    out = tmp_path / "undisturbed"
    client = started(out)
    answer(client, FULL)
    assert client.post("/wizard/review/apply").location == "/wizard/done"
    return result(out)


def test_wiz_09_after_fifty_power_cuts_during_setup_one_press_completes_it(
    tmp_path: Path, after: Tree
) -> None:
    completed = 0
    with cut_machine(tmp_path / "machine", "set-up") as machine:
        for number in range(_CUTS):
            cut = machine.cut(lambda last: last.startswith("begun"))
            said = _said(cut)
            [*_, [last]] = said["begun"]
            out = cut.files(tmp_path / f"found-{number}") / last
            done = [last] in said["done"]
            assert wrong(out, {}, after) == []
            wizard = wizard_of(started(out))
            answered = {words[1] for words in said["answered"] if words[0] == last}
            assert answered == set(FULL)
            assert [step.slug for step in wizard.snapshot().answered()] == list(wizard.steps)
            assert not done or wizard.state.step == "done"
            completed += press_once_more(out, FULL) is not None
            assert result(out) == after
            assert left_overs(out) == []
    # Not all power cuts came after the end.
    assert completed > _CUTS // 3
