"""Text for people: aligned columns, and colour on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap

import click

from platform_common.plain_text import printable

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
_GAP = "  "
_NARROWEST = 10
_WIDEST = 60


def styled(text: str, colour: str = "", *, bold: bool = False, dim: bool = False) -> str:
    """Escape `text` for a terminal, and colour it."""
    if not text:  # Colour codes around empty text would keep trailing blanks from being stripped.
        return ""
    return click.style(printable(text), fg=colour or None, bold=bold or None, dim=dim or None)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print a column of dim labels and a column of values, which come from `styled`."""
    width = max((len(label) for label, _ in facts), default=0)
    for label, value in facts:
        click.echo(f"{styled(label.ljust(width), dim=True)}{_GAP}{value}".rstrip())


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below a dim head; cells come from `styled`.

    On a terminal that is too narrow, the widest columns are narrowed and their cells wrap.
    Elsewhere only a cell that is far too wide sticks out.
    """
    table = [[styled(name, dim=True) for name in head], *rows]
    widths = [
        max(len(click.unstyle(cell)) for cell in column) for column in zip(*table, strict=True)
    ]
    columns = _terminal_columns()
    widths = _narrowed(widths, columns) if columns else [min(width, _WIDEST) for width in widths]
    for row in table:
        pieces = [
            _pieces(cell, width) if columns else [cell]
            for cell, width in zip(row, widths, strict=True)
        ]
        for line in zip_longest(*pieces, fillvalue=""):
            cells = (
                cell + " " * (width - len(click.unstyle(cell)))
                for cell, width in zip(line, widths, strict=True)
            )
            click.echo(_GAP.join(cells).rstrip())


def _narrowed(widths: list[int], columns: int) -> list[int]:
    """Reduce `widths` to a line of `columns`, unless that is too narrow for any table."""
    widths = [min(width, columns) for width in widths]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > columns and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _terminal_columns() -> int:
    """The width of the terminal in characters; 0 without a terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return 0


def _pieces(cell: str, width: int) -> list[str]:
    """Wrap `cell` into lines of `width`, each in the style of the whole."""
    text = click.unstyle(cell)
    if len(text) <= width:
        return [cell]
    return [cell.replace(text, line) for line in wrap(text, width)]
