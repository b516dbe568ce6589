"""Turns the output of `journalctl` into lines that are safe to show.

Anyone who can make a service log something controls its content, so control characters,
secrets and length are handled here, before any other code sees a line.
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
# So that a secret at the cut is still masked as a whole: no form of one is longer.
_MARGIN = 3 * 4096
_TOO_LONG = "(too long to show)"
_CUT = " …"
# Colours and other terminal escape sequences.
_TERMINAL = re.compile(
    r"\x1b\[[0-?]*+[ -/]*+[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*+(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]"
)
# Characters that move the cursor, change the writing direction, are invisible or invalid.
_UNSEEN = re.compile(
    f"[{CONTROLS}\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_UNSEEN_MARK = "·"


class Entry(Struct, frozen=True):
    """One entry; a line that is not from the journal only has a text."""

    text: str
    priority: int | None = None
    stamp_us: int | None = None
    boot: str = ""
    cursor: str = ""

    @property
    def level(self) -> str:
        """The word for its priority; empty if it has none."""
        return "" if self.priority is None else LEVELS[self.priority]

    def time(self) -> datetime | None:
        """When it was logged, in this machine's time zone."""
        if self.stamp_us is None:
            return None
        try:
            return datetime.fromtimestamp(self.stamp_us / 1e6).astimezone()
        except (OverflowError, ValueError, OSError):
            return None


def read_entries(output: bytes, redact: Callable[[str], str]) -> Iterator[Entry]:
    """Parse the output of `journalctl --output=json`; a line that is not JSON is only a text."""
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
    """A message as text; a field may occur several times."""
    if isinstance(message, list) and not all(isinstance(part, int) for part in message):
        return "\n".join(map(_one_text, message))
    return _one_text(message)


def _one_text(message: object) -> str:
    """A string, bytes as numbers, or null for a value that was too long."""
    if message is None:
        return _TOO_LONG
    if isinstance(message, list):
        try:
            return bytes(message).decode("utf-8", "replace")
        except (TypeError, ValueError):
            pass
    return message if isinstance(message, str) else repr(message)


def _integer(value: object) -> int | None:
    """Parse a small non-negative number, as journald writes it."""
    text = value if isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def shown(text: str, redact: Callable[[str], str]) -> str:
    """`text` without secrets and escape sequences, at most 4 KiB."""
    part = text[: LONGEST_TEXT + 2 * _MARGIN]
    clean = redact(visible(part.rstrip("\r\n")))
    if len(part) < len(text):
        # Its end may be the start of a secret.
        clean = clean[:-_MARGIN]
    elif len(clean) <= LONGEST_TEXT:
        return clean
    return clean[:LONGEST_TEXT] + _CUT


def visible(text: str) -> str:
    """`text` with "·" for each invisible character that has an effect."""
    return _UNSEEN.sub(_UNSEEN_MARK, _TERMINAL.sub("", text).replace("\r\n", "\n"))


def count_levels(entries: Iterable[Entry]) -> tuple[int, int, int]:
    """Count errors, warnings, and the rest."""
    errors = warnings = others = 0
    for entry in entries:
        if entry.priority is None or entry.priority > LEVELS.index("warning"):
            others += 1
        elif entry.priority == LEVELS.index("warning"):
            warnings += 1
        else:
            errors += 1
    return errors, warnings, others
