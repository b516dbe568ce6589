"""Measures the programs against the alternatives, in one run; prints and records the ratios.

Every row runs both sides in turn (A B A B …) on the same files in memory-backed
storage and compares medians, so that a change in the machine's pace falls on
both. `python -m bench.run --help` lists the options.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from bench import apply, control, dashboard, release_tools, services, wizard
from bench.measuring import Row
from bench.page import with_tables
from bench.release_tools import GIB, MIB
from dev.distributions import ROOT

_BASE = Path("/dev/shm")
Part = Callable[[], Iterator[Row]]
_PROGRAMS = ("platformctl", "pwa-app", "release-tools", "wizard-app", "services")


def main() -> None:
    """Run every part, print its rows, and write them into the page."""
    options = _options()
    if not options.only and not options.quick:
        # A table in a process of its own: Linux counts the memory of a process that starts a
        # program as if the program had used it, and this one grows from table to table.
        again = [sys.executable, "-m", "bench.run", *sys.argv[1:], "--only"]
        raise SystemExit(max(subprocess.call([*again, program]) for program in _PROGRAMS))
    base = _BASE if _BASE.is_dir() else None
    machine = (
        f"{platform.platform()}, Python {platform.python_version()},"
        f" {len(os.sched_getaffinity(0))} cores, medians of {options.runs}, files in {base}"
    )
    print(f"# {machine}")
    tables: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory(dir=base, prefix="bench-") as name:
        folder = Path(name)
        for program, parts in _parts(folder, options).items():
            tables[program] = []
            for part in parts:
                for row in part():
                    tables[program].append(row)
                    print(json.dumps(asdict(row)) if options.json else _line(row), flush=True)
                for used in folder.iterdir():
                    shutil.rmtree(used) if used.is_dir() else used.unlink()
    if options.page is not None:
        text = with_tables(options.page.read_text("utf-8"), tables, machine)
        options.page.write_text(text, "utf-8")
    rows = [row for table in tables.values() for row in table]
    if missed := [row for row in rows if not row.met]:
        raise SystemExit(f"{len(missed)} of {len(rows)} rows missed")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", choices=_PROGRAMS, help="one of the programs, or the services")
    which.add_argument("--quick", action="store_true", help="a few rows, in seconds, as a trial")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side (5)")
    parser.add_argument(
        "--size", type=int, default=2 * GIB // MIB, help="MiB of an artefact (2048)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    parser.add_argument(
        "--page",
        type=Path,
        help="page whose tables are replaced (docs/benchmarks.md; none for --quick)",
    )
    options = parser.parse_args()
    if options.page is None and not options.quick:
        options.page = ROOT / "docs/benchmarks.md"
    return options


def _parts(folder: Path, options: argparse.Namespace) -> dict[str, Sequence[Part]]:
    """What to measure, by program."""
    if options.quick:
        return {"release-tools": [lambda: release_tools.long_manifest(1)]}
    of_program: dict[str, Sequence[Part]] = {
        "platformctl": control.parts(folder, options.runs),
        "pwa-app": dashboard.parts(folder, options.runs),
        "release-tools": release_tools.parts(folder, options.size * MIB, options.runs),
        "wizard-app": [*wizard.parts(folder, options.runs), *apply.parts(folder, options.runs)],
        "services": services.parts(options.runs),
    }
    return {options.only: of_program[options.only]}


def _line(row: Row) -> str:
    word = "met   " if row.met else "MISSED"
    return f"{word} {row.value:8.3f} {row.unit:3} (≤ {row.must_be:g})  {row.what}  [{row.detail}]"


if __name__ == "__main__":
    main()
