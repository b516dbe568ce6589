"""The progress of setup: the state of the actions of a plan, by phase."""

from __future__ import annotations

from typing import cast

import pytest

from platform_common.secret import Secret
from wizard_app.setup.apply.journal import Entry, State
from wizard_app.setup.apply.progress import Row, progress
from wizard_app.setup.plan.actions import (
    NOT_HELD,
    Action,
    AddKeys,
    KeyFile,
    RemoveFile,
    RunCommand,
    SetVariables,
    WriteFile,
    write,
)
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.plan.plan import Item

NAME = write("/etc/hostname", "kitchen")
SET_NAME = RunCommand(("hostnamectl", "set-hostname", "kitchen"), 5)
KEYS = SetVariables("/etc/platform/secrets.env", {"A_KEY": NOT_HELD, "B_KEY": Secret("canary")})
GATEWAY = RunCommand(("systemctl", "restart", "x.service"), 5)
PLAN = (
    Item(Phase.SYSTEM, NAME),
    Item(Phase.SYSTEM, SET_NAME),
    Item(Phase.KEYS, KEYS),
    Item(Phase.GATEWAY, GATEWAY),
)


def attempted(*states: State, why: str = "") -> list[Entry]:
    """An attempt at the plan; failed actions have the reason `why`."""
    return [
        Entry(item.action.id, "x", state, why=why if state == "failed" else "")
        for item, state in zip(PLAN, states, strict=True)
    ]


def phases(*states: State, running: bool) -> list[str]:
    """The states of the phases that have actions: system, keys and gateway."""
    found = progress(PLAN, attempted(*states), running=running)
    return [part.state for part in found.parts if part.rows]


# The states of the four actions, then of the three phases during the attempt, and after it.
COURSE = """
waiting waiting waiting waiting | waiting waiting waiting | waiting waiting waiting
running waiting waiting waiting | running waiting waiting | stopped waiting waiting
done    waiting waiting waiting | running waiting waiting | stopped waiting waiting
done    done    running waiting | done    running waiting | done    stopped waiting
done    failed  waiting waiting | failed  waiting waiting | failed  waiting waiting
done    done    done    done    | done    done    done    | done    done    done
"""


@pytest.mark.parametrize("row", COURSE.strip().splitlines())
def test_the_state_of_a_phase_follows_from_its_actions(row: str) -> None:
    states, going, over = (part.split() for part in row.split("|"))
    assert phases(*cast("list[State]", states), running=True) == going
    assert phases(*cast("list[State]", states), running=False) == over


def test_every_phase_is_shown_and_one_without_actions_is_skipped() -> None:
    parts = progress(PLAN).parts
    assert [part.state for part in parts].count("skipped") == len(Phase) - 3
    assert [bool(part.rows) for part in parts] == [part.state != "skipped" for part in parts]


def test_before_the_first_attempt_every_action_is_waiting() -> None:
    found = progress(PLAN)
    assert {row.state for row in found.rows} == {"waiting"}
    assert (found.done, found.percent, found.files, found.commands) == (0, 0, 2, 2)
    assert found.current is found.parts[0]


def test_an_action_done_before_a_restart_is_shown_as_done() -> None:
    plan = [Item(Phase.KEYS, KEYS, kept=True), Item(Phase.GATEWAY, GATEWAY)]
    found = progress(plan, attempted("done", "done", "kept", "waiting"))
    assert [row.state for row in found.rows] == ["kept", "waiting"]
    assert found.parts[Phase.KEYS - 1].state == "kept"
    assert found.done == 1


def test_an_action_is_recognised_by_its_id_in_a_changed_plan() -> None:
    plan = [Item(Phase.SYSTEM, write("/etc/hostname", "garden")), Item(Phase.GATEWAY, GATEWAY)]
    found = progress(plan, attempted("done", "done", "done", "failed", why="no such unit"))
    assert [(row.state, row.why) for row in found.rows] == [
        ("waiting", ""),
        ("failed", "no such unit"),
    ]
    assert found.of(GATEWAY.id) is not None
    assert found.of(NAME.id) is None


def test_at_the_end_no_phase_is_current() -> None:
    found = progress(PLAN, attempted("done", "done", "done", "done"), running=True)
    assert found.current is None
    assert found.percent == 100


@pytest.mark.parametrize(
    ("action", "content"),
    [
        (NAME, "kitchen\n"),
        (WriteFile("/x", ("key = ", Secret("canary"), "\n")), "key = •••\n"),
        (KEYS, "A_KEY=•••\nB_KEY=•••\n"),
        (AddKeys("/x", ("ssh-ed25519 AAAA", "ssh-rsa BBBB")), "ssh-ed25519 AAAA\nssh-rsa BBBB\n"),
        (RemoveFile("/x"), ""),
        (RunCommand(("a",), 1, key_file=KeyFile("/run/key", Secret("canary"))), ""),
    ],
)
def test_the_content_of_a_file_is_shown_without_its_secrets(action: Action, content: str) -> None:
    assert Row(action).content == content
