"""How far setup came: `/var/lib/platform/apply-journal.jsonl`, which contains no secret.

The first line lists the actions of one attempt; each further one says what happened to one
of them. The next attempt starts the file again.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from platform_common.clock import now
from platform_common.errors import PlatformError
from platform_common.formats.decode import DecodingError, from_json
from platform_common.storage.append_log import append_line
from platform_common.storage.atomic_write import Owner, make_folder, write_atomic
from platform_common.storage.safe_read import read_own
from platform_common.storage.stale_files import remove_left_overs

ActionState = Literal["running", "done", "failed"]
State = Literal[ActionState, "waiting", "kept"]
# Writable by a wizard without root, which needs it for `forget`.
_MODE, _OWNER = 0o660, Owner("root", "platform")
_LIMIT_BYTES = 4 << 20
# Far more than an attempt has; whoever can write the file could keep a page busy for minutes.
_MOST_LINES = 4096


class Entry(Struct, frozen=True):
    """An action of an attempt: its id, its description, and its last state."""

    id: str
    what: str
    state: State = "waiting"
    at: str = ""
    why: str = ""


class Attempt(NamedTuple):
    """One attempt to set up the device; `setup` identifies the wizard state it belongs to."""

    setup: str
    at: str
    entries: tuple[Entry, ...]
    ended: bool = False

    @property
    def applied(self) -> frozenset[str]:
        """The ids of the actions that were done, in this attempt or before it."""
        return frozenset(one.id for one in self.entries if one.state in ("done", "kept"))


class _Begin(Struct, frozen=True):
    setup: str
    at: str
    actions: tuple[Entry, ...]


class _Change(Struct, frozen=True):
    at: str
    action: int
    state: Literal[ActionState, "waiting"]
    why: str = ""


class _End(Struct, frozen=True):
    at: str
    ended: Literal[True]


class Journal:
    """The journal of the current attempt."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, setup: str, entries: Sequence[Entry]) -> None:
        """Start an attempt, replacing the previous one; raises `PlatformError`."""
        document = {
            "setup": setup,
            "at": now(),
            "actions": [{"id": one.id, "what": one.what, "state": one.state} for one in entries],
        }
        make_folder(self._path.parent)
        remove_left_overs(self._path.parent, of_name=self._path.name)
        write_atomic(self._path, _line(document) + b"\n", mode=_MODE, owner=_OWNER)

    def note(self, number: int, state: State, why: str = "") -> None:
        """Record the state of an action durably."""
        self._append({"at": now(), "action": number, "state": state, "why": why})

    def end(self) -> None:
        """Record that every action is done."""
        self._append({"at": now(), "ended": True})

    def _append(self, document: dict[str, Any]) -> None:
        append_line(self._path, _line(document), mode=_MODE, owner=_OWNER)


def read_attempt(path: Path) -> Attempt | None:
    """The last attempt; None if there is none or it cannot be read."""
    try:
        begin, *changes = read_own(path, _LIMIT_BYTES).split(b"\n", _MOST_LINES + 1)
        found = from_json(begin, _Begin)
    except (FileNotFoundError, PlatformError):
        return None
    if len(changes) > _MOST_LINES:
        return None
    entries, ended = list(found.actions), False
    for line in changes:
        change = _parsed(line)
        if isinstance(change, _End):
            ended = True
        elif change is not None and 0 <= change.action < len(entries):
            one = entries[change.action]
            entries[change.action] = Entry(one.id, one.what, change.state, change.at, change.why)
    return Attempt(found.setup, found.at, tuple(entries), ended)


def forget(path: Path, ids: Container[str]) -> None:
    """Mark these actions as not done, because their secrets have changed.

    Raises `PlatformError`.
    """
    last = read_attempt(path)
    for number, one in enumerate(last.entries if last else ()):
        if one.id in ids and one.state in ("done", "kept"):
            Journal(path).note(number, "waiting")


def _parsed(line: bytes) -> _Change | _End | None:
    try:
        return from_json(line, _End) if b'"ended"' in line else from_json(line, _Change)
    except DecodingError:
        return None


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()
