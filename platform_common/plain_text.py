"""Makes text from other programs and people safe to show."""

from __future__ import annotations

import re

# As a regular expression character class: Cc without tab and line feed, surrogates, and
# noncharacters (Unicode, 23.7).
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)


def with_line_feeds(text: str) -> str:
    """`text` with LF as its only line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_controls(text: str, replacement: str = "") -> str:
    """Replace each control character by `replacement`; line feeds and tabs stay."""
    return re.sub(f"[{CONTROLS}]", replacement, text)


def one_line(text: str) -> str:
    """Replace each run of blanks and unprintable characters by one blank."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def printable(text: str) -> str:
    """Escape every unprintable character; a tab becomes a blank."""
    shown = text.replace("\t", " ")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)
