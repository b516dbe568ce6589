"""QR codes of the launch URLs."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segno import QRCode

# Black on white, whatever the terminal's colours.
_CODE, _PLAIN = "\x1b[97;40m", "\x1b[0m"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
# A module of two full blocks, about as wide as high: light, dark.
_FULL = ("██", "  ")


def on_terminal(url: str, *, colour: bool = True) -> str:
    """A QR code of `url` in block characters, with its quiet zone."""
    return "\n".join(dressed(line) if colour else line for line in lines(url))


def lines(url: str, *, halves: bool = True, quiet: int = 4) -> list[str]:
    """A QR code of `url` in block characters, with a margin of `quiet` modules.

    With `halves`, a character shows two modules, one above the other. Otherwise two
    characters show one, and only full blocks are used.
    """
    code = _made(url)
    if not halves:
        rows = code.matrix_iter(border=quiet)
        return ["".join(_FULL[bool(module)] for module in row) for row in rows]
    out = io.StringIO()
    code.terminal(out, border=quiet, compact=True)
    return [_ANSI.sub("", line) for line in out.getvalue().splitlines()]


def dressed(line: str) -> str:
    """A line of a code in its colours."""
    return f"{_CODE}{line}{_PLAIN}"


def as_image(url: str) -> str:
    """A QR code of `url` as the address of an image: black on white, with its quiet zone."""
    return str(_made(url).svg_data_uri(border=4, dark="#000", light="#fff", omitsize=True))


def _made(url: str) -> QRCode:
    # Loading it takes 35 ms; the bench row "from the start to the first answer of /healthz"
    # would miss.
    import segno

    return segno.make(url, error="l", micro=False)
