"""Text for people: aligned columns, colour where there is a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click

from platform_common.terminal import printable

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")


def styled(text: str, colour: str = "", *, bold: bool = False, dim: bool = False) -> str:
    """`text`, made safe for a terminal, in a colour."""
    return click.style(printable(text), fg=colour or None, bold=bold or None, dim=dim or None)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """A column of dim labels and a column of values; values come from `styled`."""
    width = max((len(label) for label, _ in facts), default=0)
    for label, value in facts:
        click.echo(f"{styled(label.ljust(width), dim=True)}  {value}".rstrip())


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under a dim head, each column as wide as its widest cell; cells come from `styled`."""
    widths = [
        max(len(click.unstyle(row[column])) for row in [head, *rows]) for column in range(len(head))
    ]
    for row in [[styled(name, dim=True) for name in head], *rows]:
        cells = (
            cell + " " * (width - len(click.unstyle(cell)))
            for cell, width in zip(row, widths, strict=True)
        )
        click.echo("  ".join(cells).rstrip())
