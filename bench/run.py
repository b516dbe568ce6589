"""Measure the programs against the alternatives, in one run, and print the ratios.

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
import tempfile
from dataclasses import asdict
from pathlib import Path

from bench import apply, control, dashboard, release_tools, services, wizard
from bench.measuring import Row
from bench.release_tools import GIB, MIB

_BASE = Path("/dev/shm")
_PROGRAMS = ("platformctl", "pwa-app", "release-tools", "wizard-app", "services")


def main() -> None:
    """Run every part and print its rows."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", choices=_PROGRAMS, help="one of the programs, or the services")
    parser.add_argument("--runs", type=int, default=5, help="runs of each side (5)")
    parser.add_argument(
        "--size", type=int, default=2 * GIB // MIB, help="MiB of an artefact (2048)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    options = parser.parse_args()
    base = _BASE if _BASE.is_dir() else None
    print(f"# {platform.platform()}, Python {platform.python_version()}, ", end="")
    print(f"{len(os.sched_getaffinity(0))} cores, medians of {options.runs}, files in {base}")
    rows = []
    with tempfile.TemporaryDirectory(dir=base, prefix="bench-") as name:
        folder = Path(name)
        of_program = {
            "platformctl": control.parts(folder, options.runs),
            "pwa-app": dashboard.parts(folder, options.runs),
            "release-tools": release_tools.parts(folder, options.size * MIB, options.runs),
            "wizard-app": [
                *wizard.parts(folder, options.runs),
                *apply.parts(folder, options.runs),
            ],
            "services": services.parts(options.runs),
        }
        for program in [options.only] if options.only else _PROGRAMS:
            for part in of_program[program]:
                for row in part():
                    rows.append(row)
                    print(json.dumps(asdict(row)) if options.json else _line(row), flush=True)
                for used in folder.iterdir():
                    shutil.rmtree(used) if used.is_dir() else used.unlink()
    if missed := [row for row in rows if not row.met]:
        raise SystemExit(f"{len(missed)} of {len(rows)} rows missed")


def _line(row: Row) -> str:
    word = "met   " if row.met else "MISSED"
    return f"{word} {row.value:8.3f} {row.unit:3} (≤ {row.must_be:g})  {row.what}  [{row.detail}]"


if __name__ == "__main__":
    main()
