"""Text for people: without the characters that only terminals and programs understand."""

from __future__ import annotations

import re

# The class Cc but for the tab and the line feed, and what is no character (Unicode, 23.7).
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)


def with_line_feeds(text: str) -> str:
    """`text` with LF alone at the end of its lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_controls(text: str) -> str:
    """`text` without control characters; lines and tabs stay."""
    return _CONTROLS.sub("", text)
