"""The measurements that all rows of the bench share."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

# Installed packages have byte code; let a checkout keep its own as well.
ENVIRONMENT = {name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"}


def program(name: str) -> str:
    """The path of an installed program of this environment."""
    return str(Path(sys.executable).with_name(name))


@dataclass(frozen=True)
class Row:
    """A row of the table: what was measured, its value, and its bound."""

    what: str
    value: float
    unit: str
    must_be: float
    detail: str

    @property
    def met(self) -> bool:
        """Whether the value is within its bound."""
        return self.value <= self.must_be


@dataclass(frozen=True)
class Usage:
    """The cost of a finished command."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def measure(*commands: Sequence[str], env: dict[str, str] | None = None) -> Usage:
    """Run commands one after the other; add their costs, and take the largest peak memory."""
    total = [0.0, 0.0, 0.0]
    for command in commands:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT | (env or {}),
        )
        assert process.stderr is not None
        said = process.stderr.read()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{command[0]} failed: {said.decode(errors='replace')}")
        total[0] += time.perf_counter() - started
        total[1] += usage.ru_utime + usage.ru_stime
        total[2] = max(total[2], usage.ru_maxrss / 1024)
    return Usage(*total)


def paired(
    runs: int, ours: Callable[[], Usage], theirs: Callable[[], Usage]
) -> tuple[float, str, list[Usage]]:
    """The ratio of the median wall times, the times themselves, and our costs."""
    a, b = [], []
    for _ in range(runs):
        a.append(ours())
        b.append(theirs())
    first, second = (statistics.median(u.wall_s for u in side) for side in (a, b))
    return first / second, f"{first:.3f} s against {second:.3f} s", a


def python(*arguments: str) -> Callable[[], Usage]:
    """A measurement of this Python with those arguments."""
    return lambda: measure([sys.executable, *arguments])
