"""Text for people: aligned columns, colour where there is a terminal."""

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
    """`text`, made safe for a terminal, in a colour."""
    if not text:  # Codes around nothing are no blanks that could be cut off.
        return ""
    return click.style(printable(text), fg=colour or None, bold=bold or None, dim=dim or None)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """A column of dim labels and a column of values; values come from `styled`."""
    width = max((len(label) for label, _ in facts), default=0)
    for label, value in facts:
        click.echo(f"{styled(label.ljust(width), dim=True)}{_GAP}{value}".rstrip())


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under a dim head, each column as wide as its widest cell; cells come from `styled`.

    Where that is more than the terminal has, the widest columns become narrower
    and their cells go on below. Elsewhere a cell that is far too wide sticks out alone.
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
    """`widths` for a line of `columns`, unless that is too narrow for any table."""
    widths = [min(width, columns) for width in widths]
    while sum(widths) + len(_GAP) * (len(widths) - 1) > columns and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _terminal_columns() -> int:
    """How many characters a line of the terminal holds; 0 where there is none."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return 0


def _pieces(cell: str, width: int) -> list[str]:
    """`cell`, or as many lines of `width` as it takes, each in the style of the whole."""
    text = click.unstyle(cell)
    if len(text) <= width:
        return [cell]
    return [cell.replace(text, line) for line in wrap(text, width)]
