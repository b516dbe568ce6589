"""The states of the log page: each prepares a journal, and a control CLI that names a unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


class LogState(NamedTuple):
    """What the page's address is, and what makes the environment of a dashboard in this state."""

    address: str
    prepare: Callable[[FakeCtl, Path], Mapping[str, str]]


def usual(journal: RealJournal) -> None:
    """What a gateway logs on a usual day with a restart in it."""
    journal.write(
        *(f"message {number} handled in {number * 13} ms" for number in range(12)),
        Logged("telegram: slow reply (2.1 s)", 4),
        Logged("provider returned 401", 3),
        Logged("a step\n  of several\n  lines", 7),
        Logged("gateway listening on 127.0.0.1:18789", 5, boot=NEXT_BOOT),
        *(Logged(f"{number} " + "word " * 60, boot=NEXT_BOOT) for number in range(6)),
    )


def _answers(ctl: FakeCtl, folder: Path) -> RealJournal:
    ctl.answer("status --json", STATUS)
    return RealJournal(folder / "journal")


def _fine(ctl: FakeCtl, folder: Path) -> Mapping[str, str]:
    journal = _answers(ctl, folder)
    usual(journal)
    return {**ctl.environment, **journal.environment}


def _empty(ctl: FakeCtl, folder: Path) -> Mapping[str, str]:
    journal = _answers(ctl, folder)
    journal.write(Logged("of another", unit="other.service"))
    return {**ctl.environment, **journal.environment}


def _hostile(ctl: FakeCtl, folder: Path) -> Mapping[str, str]:
    journal = _answers(ctl, folder)
    journal.write(*HOSTILE.values())
    return {**ctl.environment, **journal.environment}


def _unknown_profile(ctl: FakeCtl, folder: Path) -> Mapping[str, str]:
    journal = _answers(ctl, folder)
    usual(journal)
    ctl.answer("status --json", status=1, errors="error: no profile is active\n")
    return {**ctl.environment, **journal.environment}


def _missing(ctl: FakeCtl, folder: Path) -> Mapping[str, str]:
    _answers(ctl, folder)
    return {**ctl.environment, **path_without("journalctl", folder / "nothing")}


def _fails(script: str) -> Callable[[FakeCtl, Path], Mapping[str, str]]:
    def prepare(ctl: FakeCtl, folder: Path) -> Mapping[str, str]:
        _answers(ctl, folder)
        return {**ctl.environment, **stand_in(folder / "programs", "journalctl", script)}

    return prepare


_DENIED = "echo No journal files were opened due to insufficient permissions. >&2; exit 1"

STATES: Mapping[str, LogState] = {
    "fine": LogState("/app/logs", _fine),
    "filtered": LogState("/app/logs?prio=warning&q=provider", _fine),
    "no-match": LogState("/app/logs?q=nowhere", _fine),
    "empty": LogState("/app/logs", _empty),
    "hostile": LogState("/app/logs", _hostile),
    "unknown-profile": LogState("/app/logs", _unknown_profile),
    "no-journalctl": LogState("/app/logs", _missing),
    "denied": LogState("/app/logs", _fails(_DENIED)),
    "plain-lines": LogState("/app/logs", _fails("printf 'first line\\nsecond line\\n'")),
}
