"""Record every command line and environment on this machine, as fast as possible."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.network import end

# A separate program without site modules, because it starts and runs faster.
_WATCH = """
import os, sys
seen, begun = set(), False
with open(sys.argv[1], "wb", buffering=0) as log:
    while True:
        for name in filter(str.isdigit, os.listdir("/proc")):
            for kind in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{name}/{kind}", "rb") as file:
                        found = file.read()
                except OSError:
                    continue
                if found not in seen:
                    seen.add(found)
                    log.write(found + b"\\n")
        begun = begun or os.write(1, b".")
"""


@contextlib.contextmanager
def watched(file: Path) -> Iterator[None]:
    """Watch until the block ends; then `file` contains each record once."""
    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", _WATCH, file],
        env={},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        process.stdout.read(1)
        try:
            yield
        finally:
            end(process)
