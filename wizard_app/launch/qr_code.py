"""QR codes of the launch URLs."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segno import QRCode

# Black on white, whatever the terminal's colours are.
_CODE, _PLAIN = "\x1b[97;40m", "\x1b[0m"
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
# A module of full blocks, as wide as it is high: light, and dark.
_FULL = ("██", "  ")


def on_terminal(url: str, *, colour: bool = True) -> str:
    """A QR code of `url` in block characters, with its quiet zone."""
    return "\n".join(dressed(line) if colour else line for line in lines(url))


def lines(url: str, *, halves: bool = True, quiet: int = 4) -> list[str]:
    """A QR code of `url` in block characters, with so many `quiet` modules around it.

    With `halves` a character shows two modules, one above the other. Without it two
    characters show one, and no other block than the full one is used.
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
    # Loading it takes 35 ms, by which the start would miss its row of the bench ("from the
    # start to the first answer of /healthz").
    import segno

    return segno.make(url, error="l", micro=False)
