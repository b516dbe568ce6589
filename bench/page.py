"""The tables of docs/benchmarks.md: each program's rows, between two markers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.measuring import Row


def with_tables(text: str, tables: Mapping[str, Sequence[Row]], machine: str) -> str:
    """The page `text` with the rows of each program that was measured, on `machine`."""
    for program, rows in tables.items():
        begin, end = (f"<!-- {program}: {word} -->\n" for word in ("begin", "end"))
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"The page has no place for the table of {program}")
        table = "".join(f"{line}\n" for line in _table(rows, machine))
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


def _table(rows: Sequence[Row], machine: str) -> Iterator[str]:
    yield f"{machine}:"
    yield ""
    yield "| what | must be | measured | details |"
    yield "|---|---|---|---|"
    for row in rows:
        missed = "" if row.met else ", **missed**"
        unit = "" if row.unit in ("", "x") else f" {row.unit}"
        values = (f"≤ {row.must_be:.3g}{unit}", f"{row.value:.3g}{unit}{missed}")
        cells = (row.what, *values, row.detail)
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
