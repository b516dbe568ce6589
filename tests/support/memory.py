"""The most memory that a program had at a time."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.running import printed

# A process between us and the program: a child that is forked counts our memory as its own.
_MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(usage.ru_maxrss)
sys.exit(process.returncode)
"""


def peak_kib(command: list[str], *, cwd: Path, env: Mapping[str, str]) -> int:
    """The peak resident memory in KiB of `command`, which must succeed."""
    return int(printed(sys.executable, "-I", "-S", "-c", _MEASURE, *command, cwd=cwd, env=env))
