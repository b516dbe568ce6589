"""QR codes of the launch URLs; what makes them is loaded when one is wanted."""

from __future__ import annotations

import io
import re

# Black on white, whatever the terminal's colours are.
_CODE, _PLAIN = "\x1b[97;40m", "\x1b[0m"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(url: str, *, colour: bool = True) -> str:
    """A QR code of `url` in block characters, with its quiet zone."""
    import segno

    out = io.StringIO()
    segno.make(url, error="l", micro=False).terminal(out, border=4, compact=True)
    lines = [_ANSI.sub("", line) for line in out.getvalue().splitlines()]
    return "\n".join(f"{_CODE}{line}{_PLAIN}" if colour else line for line in lines)


def as_image(url: str) -> str:
    """A QR code of `url` as the address of an image: black on white, with its quiet zone."""
    import segno

    code = segno.make(url, error="l", micro=False)
    return str(code.svg_data_uri(border=4, dark="#000", light="#fff", omitsize=True))
