"""How far setting up is: the actions of a plan by phase, and what a try made of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from platform_common.message import Sentence
from wizard_app.setup.apply.journal import ActionState, Entry
from wizard_app.setup.plan.actions import Action, AddKeys, RunCommand, SetVariables, WriteFile
from wizard_app.setup.plan.phases import TITLES, Phase
from wizard_app.setup.plan.plan import Plan

# `kept` was done before a restart; `stopped` was under way, and nothing is any more; a
# phase is `skipped` when nothing was to be done in it.
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


# From the journal, or as it happens.
Reported = Entry | SetupProgress


class Row(NamedTuple):
    """An action, and what became of it; `why` says what went wrong, in English."""

    action: Action
    state: State = "waiting"
    why: str = ""

    @property
    def content(self) -> str:
        """What it puts into its file, secrets masked; empty when it is about no file's text."""
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
    """The phases in their order, all of them."""

    parts: tuple[Part, ...]

    @property
    def rows(self) -> list[Row]:
        """Every action."""
        return [row for part in self.parts for row in part.rows]

    def of(self, action_id: str) -> Row | None:
        """The action of that id."""
        return next((row for row in self.rows if row.action.id == action_id), None)

    @property
    def done(self) -> int:
        """How many actions are done."""
        return sum(row.state in _OVER for row in self.rows)

    @property
    def commands(self) -> int:
        """How many programs are run."""
        return sum(isinstance(row.action, RunCommand) for row in self.rows)

    @property
    def files(self) -> int:
        """How many files are written or removed."""
        return len({row.action.shown["path"] for row in self.rows if "path" in row.action.shown})

    @property
    def percent(self) -> int:
        """How much of it is done."""
        return 100 * self.done // max(len(self.rows), 1)

    @property
    def current(self) -> Part | None:
        """The phase that is under way, or comes next; None when all of it is done."""
        return next((part for part in self.parts if part.state in ("running", "waiting")), None)


def progress(plan: Plan, reported: Iterable[Reported] = (), *, running: bool = False) -> Progress:
    """What became of the actions of a plan, from reports that name them by their ids.

    Without `running` nothing is under way any more.
    """
    known = {one.id: one for one in reported}
    rows = [
        (item.phase, _row(item.action, known.get(item.action.id), item.kept, running))
        for item in plan
    ]
    found = {phase: tuple(row for its, row in rows if its is phase) for phase in Phase}
    return Progress(tuple(Part(TITLES[phase], of, _of(of, running)) for phase, of in found.items()))


def _row(action: Action, reported: Reported | None, kept: bool, running: bool) -> Row:
    state: State = reported.state if reported else "waiting"
    if kept:
        return Row(action, "kept")
    if state == "kept":
        # It was kept by the try, and is done anew: its secret was entered again.
        return Row(action, "done")
    if state == "running" and not running:
        return Row(action, "stopped")
    return Row(action, state, reported.why if reported else "")


def _of(rows: Sequence[Row], running: bool) -> State:
    """What became of a phase."""
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
