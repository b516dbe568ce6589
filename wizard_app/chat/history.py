"""The chat's history: one line of JSON for each turn, in an append-only file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from platform_common import clock
from platform_common.errors import access_error
from platform_common.paths import Paths, Place
from platform_common.records.profiles import Profile
from platform_common.storage.append_log import append_line, remove
from platform_common.storage.atomic_write import Owner, make_folder
from platform_common.storage.reverse_lines import blocks_from_end
from platform_common.storage.safe_read import open_regular
from wizard_app.setup.plan.actions import AGENT

SHOWN_TURNS = 200
# How much of the file's end a page reads; a single turn is never longer.
SHOWN_BYTES = 1 << 20
# Far more lines than the turns need; the rest of the file may be half a million junk lines.
_MOST_LINES = 50 * SHOWN_TURNS
NAME = "chat-history.jsonl"
_VARIABLE = "WIZARD_CHAT_HISTORY"
_MODE = 0o640
_BLOCK_BYTES = 1 << 16
# Line separators for Python and other libraries, beside those that JSON escapes.
_ENDS = ("\x85", "\u2028", "\u2029")

Role = Literal["user", "assistant"]


class Turn(Struct, frozen=True, omit_defaults=True):
    """One line (docs/reference/chat.md, "The history").

    `error` marks a turn that says, in English, why there is no answer, and `stopped` an answer
    that ended before it was complete.
    """

    role: Role
    content: str
    at: str = ""
    error: bool = False
    stopped: bool = False


def turn(role: Role, content: str, *, error: bool = False, stopped: bool = False) -> Turn:
    """Return a turn with the current time."""
    return Turn(role, content, clock.now(), error, stopped)


class ChatHistory:
    """The turns in the file at `path`; several programs may append at the same time."""

    def __init__(self, path: Path, *, folder_owner: Owner | None = None) -> None:
        self.path = path
        self._folder_owner = folder_owner

    def append(self, said: Turn) -> None:
        """Append a turn durably; raises `PlatformError`."""
        make_folder(self.path.parent, owner=self._folder_owner)
        append_line(self.path, line_of(said), mode=_MODE, owner=AGENT)

    def last(self, count: int = SHOWN_TURNS) -> list[Turn]:
        """The last turns, oldest first; raises `AccessError`.

        Only complete ones in the last `SHOWN_BYTES` and the last lines. Lines that are not turns
        are left out.
        """
        blocks = blocks_from_end(self.path, block_bytes=SHOWN_BYTES)
        try:
            with contextlib.closing(blocks):
                lines = next(blocks, [])
        except FileNotFoundError:
            return []
        found: list[Turn] = []
        for line in reversed(lines[-_MOST_LINES:]):
            if len(found) == count:
                break
            said = parse(line)
            if said is not None:
                found.append(said)
        return found[::-1]

    def lines(self) -> Iterator[tuple[bytes, Turn]]:
        """Yield every present turn with its line, in constant memory; raises `AccessError`."""
        try:
            with open_regular(self.path, follow_link=False, one_name=True) as descriptor:
                for line in _lines(descriptor, self.path):
                    said = parse(line)
                    if said is not None:
                        yield line, said
        except FileNotFoundError:
            return

    def clear(self) -> bool:
        """Delete all turns; False if there are none. Raises `PlatformError`."""
        return remove(self.path)


def history_of(paths: Paths, profile: Profile | None) -> ChatHistory:
    """The history file for `profile`, or for a device without one."""
    named = paths.named(_VARIABLE)
    if named is not None or profile is None:
        return ChatHistory(named or paths.path_of(Place(f"/var/lib/platform/{NAME}")))
    return ChatHistory(paths.on_device(f"{profile.data_dir}/{NAME}"), folder_owner=AGENT)


def line_of(said: Turn) -> bytes:
    """The line for a turn, without anything inside that a reader could take for a line end."""
    line = msgspec.json.encode(said)
    for end in _ENDS:
        line = line.replace(end.encode(), b"\\u%04x" % ord(end))
    return line


_decode = msgspec.json.Decoder(Turn).decode


def parse(line: bytes) -> Turn | None:
    """Parse a line; None for one that is torn, invalid or too long."""
    if len(line) > SHOWN_BYTES:
        return None
    try:
        return _decode(line)
    except (ValueError, RecursionError):
        return None


def _lines(descriptor: int, path: Path) -> Iterator[bytes]:
    """Yield the lines of an open file up to its present end; a line that is too long in part."""
    begun = b""
    position, end = 0, os.fstat(descriptor).st_size
    while position < end:
        with access_error(path):
            block = os.pread(descriptor, min(_BLOCK_BYTES, end - position), position)
        if not block:
            break
        position += len(block)
        *whole, rest = block.split(b"\n")
        if whole:
            yield begun + whole[0]
            yield from whole[1:]
            begun = rest
        elif len(begun) <= SHOWN_BYTES:
            begun += rest
    yield begun
