"""How far setting up came: `/var/lib/platform/apply-journal.jsonl`, which holds no secret.

The first line lists the actions of one try, each further one says what became of one of
them. The next try begins the file anew.
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
# Writable for a wizard that is not root, which has `forget` to say.
_MODE, _OWNER = 0o660, Owner("root", "platform")
_LIMIT_BYTES = 4 << 20
# Far more than a try has; who may write it could have a page read lines for minutes.
_MOST_LINES = 4096


class Entry(Struct, frozen=True):
    """An action of a try: its id, itself in words, and what became of it last."""

    id: str
    what: str
    state: State = "waiting"
    at: str = ""
    why: str = ""


class Try(NamedTuple):
    """One try to set up the device; `setup` tells it from those of another wizard state."""

    setup: str
    at: str
    entries: tuple[Entry, ...]
    ended: bool = False

    @property
    def applied(self) -> frozenset[str]:
        """The ids of the actions that were done, in this try or before it."""
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
    """The journal of the try that goes on now."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, setup: str, entries: Sequence[Entry]) -> None:
        """Begin a try, in place of the one before; raises `PlatformError`."""
        document = {
            "setup": setup,
            "at": now(),
            "actions": [{"id": one.id, "what": one.what, "state": one.state} for one in entries],
        }
        make_folder(self._path.parent)
        remove_left_overs(self._path.parent, of_name=self._path.name)
        write_atomic(self._path, _line(document) + b"\n", mode=_MODE, owner=_OWNER)

    def note(self, number: int, state: State, why: str = "") -> None:
        """Say what became of an action; on the disk when this returns."""
        self._append({"at": now(), "action": number, "state": state, "why": why})

    def end(self) -> None:
        """Say that every action is done."""
        self._append({"at": now(), "ended": True})

    def _append(self, document: dict[str, Any]) -> None:
        append_line(self._path, _line(document), mode=_MODE, owner=_OWNER)


def read_try(path: Path) -> Try | None:
    """The last try; None when there is none, or nothing can be read of it."""
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
    return Try(found.setup, found.at, tuple(entries), ended)


def forget(path: Path, ids: Container[str]) -> None:
    """Have the actions of these ids count as not done, as their secrets are others by now.

    Raises `PlatformError`.
    """
    last = read_try(path)
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
