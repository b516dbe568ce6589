"""A power cut while a device is set up: what was acknowledged is there, and one press completes it.

Beside that, the writers that setting up and the chat brought, all of them at work at once.
"""

from __future__ import annotations

import stat
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.apply_power_cut import Cut, cuts, disk_after, writers
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
from wizard_app.chat_history import ChatHistory
from wizard_app.journal import read_try
from wizard_app.state_file import StateFile
from wizard_app.steps import STEPS

_CUTS = 50
_MODES = {"journal": 0o660, "chat": 0o640, "home/.ssh/keys": 0o600, STATE: 0o600}


@pytest.fixture
def after(tmp_path: Path) -> Tree:
    """What a device is in the end."""
    out = tmp_path / "undisturbed"
    client = started(out)
    answer(client, FULL)
    assert client.post("/wizard/review/apply").location == "/wizard/done"
    return result(out)


def _said(cut: Cut) -> dict[str, list[list[str]]]:
    """The words behind the first one of each line, by that one."""
    found = defaultdict(list)
    for line in cut.said:
        first, *words = line.split()[:4] or [""]
        found[first].append(words)
    return found


def test_wiz_09_fifty_power_cuts_while_it_is_set_up(tmp_path: Path, after: Tree) -> None:
    begun = set()
    for number, cut in enumerate(cuts(tmp_path / "machine", "apply", _CUTS)):
        said = _said(cut)
        [*_, [last]] = said["begun"]
        out = disk_after(cut, tmp_path / f"found-{number}") / last
        cut.disk.unlink()
        done = [last] in said["done"]
        assert wrong(out, {}, after) == []
        wizard = wizard_of(started(out))
        answered = {words[1] for words in said["answered"] if words[0] == last}
        assert answered == set(FULL)
        assert [step.slug for step in wizard.standing().answered()] == list(wizard.steps)
        assert not done or wizard.state.step == "done"
        if press_once_more(out, FULL) is not None:
            begun.add(number)
        assert result(out) == after
        assert left_overs(out) == []
    # Not all of them came too late.
    assert len(begun) > _CUTS // 3


def lost(folder: Path, cut: Cut) -> list[str]:
    """What of that which was acknowledged is not there, or was never written."""
    said = _said(cut)
    at = {name: max((int(one[0]) for one in said[name]), default=0) for name in writers(folder)}
    problems = [
        name
        for name, mode in _MODES.items()
        if (folder / name).exists() and stat.S_IMODE((folder / name).stat().st_mode) != mode
    ]
    last = read_try(folder / "journal")
    notes = sorted(int(entry.why or 0) for entry in last.entries) if last else [0, 0, 0]
    if notes not in [_last_three(at["journal"]), _last_three(at["journal"] + 1)]:
        problems.append(f"journal: {notes}")
    keys = folder / "home/.ssh/keys"
    lines = keys.read_text().splitlines() if keys.exists() else []
    if lines not in [_keys(at["keys"]), _keys(at["keys"] + 1)]:
        problems.append(f"keys: {len(lines)} lines")
    turns = [int(one.content.split()[0]) for one in ChatHistory(folder / "chat").last()]
    if turns[-3:] not in [_last_turns(at["chat"]), _last_turns(at["chat"] + 1)]:
        problems.append(f"chat: {turns[-3:]}")
    named = StateFile(folder / STATE, STEPS).load().answers.values.get("hostname", "box-0")
    if named not in (f"box-{at['state']}", f"box-{at['state'] + 1}"):
        problems.append(f"state: {named}")
    return problems


def _last_three(number: int) -> list[int]:
    return [max(0, one) for one in range(number - 2, number + 1)]


def _last_turns(number: int) -> list[int]:
    return [one for one in range(number - 2, number + 1) if one > 0]


def _keys(count: int) -> list[str]:
    return [f"{KEY}-{number}" for number in range(1, count + 1)]


def test_fifty_power_cuts_lose_no_line_no_key_no_turn_and_no_answer(tmp_path: Path) -> None:
    for number, cut in enumerate(cuts(tmp_path / "machine", "write", _CUTS)):
        folder = disk_after(cut, tmp_path / f"found-{number}")
        cut.disk.unlink()
        assert lost(folder, cut) == []
        # What was in the making does not stand in the way.
        for write in writers(folder).values():
            write(1_000_000)
        assert not list(folder.rglob(".*.tmp"))
    assert len(cut.said) > _CUTS


@pytest.mark.parametrize("unsynced", ["files", "folders"])
def test_a_writer_that_forgets_an_fsync_is_found_out(tmp_path: Path, unsynced: str) -> None:
    found = cuts(tmp_path / "machine", "write", 12, unsynced)
    problems = [lost(disk_after(cut, tmp_path / f"found-{n}"), cut) for n, cut in enumerate(found)]
    assert any(problems)
