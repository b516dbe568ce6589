"""The progress of setup: the actions of a plan by phase, with their states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from platform_common.message import Sentence
from wizard_app.setup.apply.journal import ActionState, Entry
from wizard_app.setup.plan.actions import Action, AddKeys, RunCommand, SetVariables, WriteFile
from wizard_app.setup.plan.phases import TITLES, Phase
from wizard_app.setup.plan.plan import Plan

# `kept`: done before a restart; `stopped`: was running when the attempt ended; a phase is
# `skipped` if it has no actions.
State = Literal["waiting", "running", "done", "failed", "kept", "stopped", "skipped"]
_OVER: frozenset[State] = frozenset({"done", "kept"})


class SetupProgress(Struct, frozen=True):
    """One action while a plan is carried out: its number from 1, and its state.

    `of` is the number of all actions; `why` is the reason of a failure.
    """

    number: int
    of: int
    id: str
    said: str
    state: ActionState = "running"
    why: str = ""


# From the journal, or from live reports.
Reported = Entry | SetupProgress


class Row(NamedTuple):
    """An action and its state; `why` says what went wrong, in English."""

    action: Action
    state: State = "waiting"
    why: str = ""

    @property
    def content(self) -> str:
        """The contents that it writes, secrets masked; empty if it writes no text."""
        shown = self.action.shown
        match self.action:
            case WriteFile():
                return str(shown["content"])
            case SetVariables():
                return "".join(f"{name}={value}\n" for name, value in shown["variables"].items())
            case AddKeys():
                return "".join(f"{line}\n" for line in self.action.lines)
        return ""


class Part(NamedTuple):
    """A phase with its actions."""

    title: Sentence
    rows: tuple[Row, ...]
    state: State


class Progress(NamedTuple):
    """All phases, in order."""

    parts: tuple[Part, ...]

    @property
    def rows(self) -> list[Row]:
        """Every action."""
        return [row for part in self.parts for row in part.rows]

    def of(self, action_id: str) -> Row | None:
        """The action with that id."""
        return next((row for row in self.rows if row.action.id == action_id), None)

    @property
    def done(self) -> int:
        """The number of finished actions."""
        return sum(row.state in _OVER for row in self.rows)

    @property
    def commands(self) -> int:
        """The number of commands to run."""
        return sum(isinstance(row.action, RunCommand) for row in self.rows)

    @property
    def files(self) -> int:
        """The number of files to write or remove."""
        return len({row.action.shown["path"] for row in self.rows if "path" in row.action.shown})

    @property
    def percent(self) -> int:
        """The finished share, in per cent."""
        return 100 * self.done // max(len(self.rows), 1)

    @property
    def current(self) -> Part | None:
        """The running or next phase; None if all are done."""
        return next((part for part in self.parts if part.state in ("running", "waiting")), None)


def progress(plan: Plan, reported: Iterable[Reported] = (), *, running: bool = False) -> Progress:
    """Combine a plan with reports about its actions, by id.

    Without `running`, no action counts as running.
    """
    known = {one.id: one for one in reported}
    found: dict[Phase, list[Row]] = {phase: [] for phase in Phase}
    for item in plan:
        row = _row(item.action, known.get(item.action.id), item.kept, running)
        found[item.phase].append(row)
    return Progress(
        tuple(
            Part(TITLES[phase], tuple(rows), _phase_state(rows, running))
            for phase, rows in found.items()
        )
    )


def _row(action: Action, reported: Reported | None, kept: bool, running: bool) -> Row:
    state: State = reported.state if reported else "waiting"
    if kept:
        return Row(action, "kept")
    if state == "kept":
        # The attempt kept it; it is repeated, because its secret was entered again.
        return Row(action, "done")
    if state == "running" and not running:
        return Row(action, "stopped")
    return Row(action, state, reported.why if reported else "")


def _phase_state(rows: Sequence[Row], running: bool) -> State:
    states = {row.state for row in rows}
    if not states:
        return "skipped"
    for state in ("failed", "running", "stopped"):
        if state in states:
            return state
    if states <= _OVER:
        return "kept" if states == {"kept"} else "done"
    if states & _OVER:
        return "running" if running else "stopped"
    return "waiting"
