"""Entries of the journal: from what `journalctl` prints to lines that are safe to show.

Whoever can make a service log something decides what is in there, so control
characters, secrets and length are dealt with here, before anything else looks
at a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from platform_common.plain_text import CONTROLS

LEVELS = ("emerg", "alert", "crit", "error", "warning", "notice", "info", "debug")
_USUAL = LEVELS.index("info")
LONGEST_TEXT = 4096
# A secret that the cut would part is masked before it: no form of one is longer.
_MARGIN = 3 * 4096
_TOO_LONG = "(too long to show)"
_CUT = " …"
# Colours, and other commands to a terminal that have an end.
_TERMINAL = re.compile(
    r"\x1b\[[0-?]*+[ -/]*+[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]"
)
# What moves the cursor, turns the direction of writing, is not seen, or is no character.
_UNSEEN = re.compile(
    f"[{CONTROLS}\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_UNSEEN_MARK = "·"


class Entry(Struct, frozen=True):
    """One entry; a line that `journalctl` would not print has but a text."""

    text: str
    priority: int | None = None
    stamp_us: int | None = None
    boot: str = ""
    cursor: str = ""

    @property
    def level(self) -> str:
        """The word for its priority; empty when it has none."""
        return "" if self.priority is None else LEVELS[self.priority]

    def time(self) -> datetime | None:
        """When it was logged, in the zone of this machine."""
        if self.stamp_us is None:
            return None
        try:
            return datetime.fromtimestamp(self.stamp_us / 1e6).astimezone()
        except (OverflowError, ValueError, OSError):
            return None


def read_entries(output: bytes, redact: Callable[[str], str]) -> Iterator[Entry]:
    """The entries in what `journalctl --output=json` printed; a line that is no JSON is a text."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for line in output.split(b"\n"):
        if not line.strip():
            continue
        try:
            fields = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield Entry(shown(line.decode("utf-8", "replace"), redact))
        else:
            yield _entry(fields, redact)


def _entry(fields: Mapping[str, Any], redact: Callable[[str], str]) -> Entry:
    priority = _integer(fields.get("PRIORITY"))
    return Entry(
        text=shown(_text(fields.get("MESSAGE", "")), redact),
        priority=_USUAL if priority is None else min(priority, len(LEVELS) - 1),
        stamp_us=_integer(fields.get("__REALTIME_TIMESTAMP")),
        boot=_word(fields.get("_BOOT_ID")),
        cursor=_word(fields.get("__CURSOR")),
    )


def _text(message: object) -> str:
    """A message as text; a field may be there several times."""
    if isinstance(message, list) and not all(isinstance(part, int) for part in message):
        return "\n".join(map(_one_text, message))
    return _one_text(message)


def _one_text(message: object) -> str:
    """A text, bytes as numbers, or nothing because it would have been too long."""
    if message is None:
        return _TOO_LONG
    if isinstance(message, list):
        try:
            return bytes(message).decode("utf-8", "replace")
        except (TypeError, ValueError):
            pass
    return message if isinstance(message, str) else repr(message)


def _integer(value: object) -> int | None:
    """A small number that is not negative, as journald writes it."""
    text = value if isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def shown(text: str, redact: Callable[[str], str]) -> str:
    """`text` without secrets and commands to a terminal, and 4 KiB of it at most."""
    part = text[: LONGEST_TEXT + 2 * _MARGIN]
    clean = redact(visible(part.rstrip("\r\n")))
    if len(part) < len(text):
        # Its end may be the beginning of a secret.
        clean = clean[:-_MARGIN]
    elif len(clean) <= LONGEST_TEXT:
        return clean
    return clean[:LONGEST_TEXT] + _CUT


def visible(text: str) -> str:
    """`text` with a dot for each character that is not seen, but does something."""
    return _UNSEEN.sub(_UNSEEN_MARK, _TERMINAL.sub("", text).replace("\r\n", "\n"))


def count_levels(entries: Iterable[Entry]) -> tuple[int, int, int]:
    """How many are errors, warnings, and neither."""
    errors = warnings = others = 0
    for entry in entries:
        if entry.priority is None or entry.priority > LEVELS.index("warning"):
            others += 1
        elif entry.priority == LEVELS.index("warning"):
            warnings += 1
        else:
            errors += 1
    return errors, warnings, others
