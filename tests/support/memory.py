"""Memory: the peak use of a program, and folders in memory, which are fast."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.running import printed

_SHARED = Path("/dev/shm")
# Containers may have little or none; then the folder is among other temporary files.
_ENOUGH_BYTES = 48 << 20
# A process between us and the program, because a forked child counts our memory as its own.
_MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(usage.ru_maxrss)
sys.exit(process.returncode)
"""


def peak_kib(command: list[str], *, cwd: Path, env: Mapping[str, str]) -> int:
    """The peak resident memory of `command` in KiB; the command must succeed."""
    return int(printed(sys.executable, "-I", "-S", "-c", _MEASURE, *command, cwd=cwd, env=env))


@contextlib.contextmanager
def in_memory() -> Iterator[Path]:
    """A folder, in memory if there is enough, that every user can enter."""
    enough = _SHARED.is_dir() and shutil.disk_usage(_SHARED).free > _ENOUGH_BYTES
    with tempfile.TemporaryDirectory(dir=_SHARED if enough else None) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
