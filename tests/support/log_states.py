"""The states of the log page: each prepares a journal, and a control CLI that names a unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.support.control_cli import FakeCtl
from tests.support.journals import HOSTILE, NEXT_BOOT, UNIT, Logged, RealJournal
from tests.support.stand_in import path_without, stand_in

STATUS = {
    "profile_id": "openclaw",
    "unit": UNIT,
    "active_state": "active",
    "agent": {"profile_id": "openclaw", "unit": UNIT, "journal_unit": UNIT},
    "tunnel": {"unit": "platform-tunnel.service", "active_state": "active"},
}
Prepare = Callable[[FakeCtl, Path], Mapping[str, str]]


class LogState(NamedTuple):
    """The address of the page, and a function that returns the environment of the dashboard."""

    address: str
    prepare: Prepare


def usual(journal: RealJournal) -> None:
    """The log of a gateway on a usual day with a restart."""
    journal.write(
        *(f"message {number} handled in {number * 13} ms" for number in range(12)),
        Logged("telegram: slow reply (2.1 s)", 4),
        Logged("provider returned 401", 3),
        Logged("a step\n  of several\n  lines", 7),
        Logged("gateway listening on 127.0.0.1:18789", 5, boot=NEXT_BOOT),
        *(Logged(f"{number} " + "word " * 60, boot=NEXT_BOOT) for number in range(6)),
    )


def _written(write: Callable[[RealJournal], object]) -> Prepare:
    """A healthy device whose journal is written by `write`."""

    def prepare(ctl: FakeCtl, folder: Path) -> Mapping[str, str]:
        ctl.answer("status --json", STATUS)
        write(journal := RealJournal(folder / "journal"))
        return {**ctl.environment, **journal.environment}

    return prepare


def _unknown_profile(ctl: FakeCtl, folder: Path) -> Mapping[str, str]:
    environment = _written(usual)(ctl, folder)
    ctl.answer("status --json", status=1, errors="error: no profile is active\n")
    return environment


def _programs(environment: Callable[[Path], Mapping[str, str]]) -> Prepare:
    """A device whose programs are in another folder."""

    def prepare(ctl: FakeCtl, folder: Path) -> Mapping[str, str]:
        ctl.answer("status --json", STATUS)
        return {**ctl.environment, **environment(folder / "programs")}

    return prepare


def _fails(script: str) -> Prepare:
    return _programs(lambda folder: stand_in(folder, "journalctl", script))


_DENIED = "echo No journal files were opened due to insufficient permissions. >&2; exit 1"

STATES: Mapping[str, LogState] = {
    "fine": LogState("/app/logs", _written(usual)),
    "filtered": LogState("/app/logs?prio=warning&q=provider", _written(usual)),
    "no-match": LogState("/app/logs?q=nowhere", _written(usual)),
    "empty": LogState(
        "/app/logs", _written(lambda journal: journal.write(Logged("x", unit="x.service")))
    ),
    "hostile": LogState("/app/logs", _written(lambda journal: journal.write(*HOSTILE.values()))),
    "unknown-profile": LogState("/app/logs", _unknown_profile),
    "no-journalctl": LogState("/app/logs", _programs(partial(path_without, "journalctl"))),
    "denied": LogState("/app/logs", _fails(_DENIED)),
    "plain-lines": LogState("/app/logs", _fails("printf 'first line\\nsecond line\\n'")),
}
