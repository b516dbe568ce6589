"""Every command line and every environment on this machine, as fast as they can be read."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.network import end

# A program of its own, without the modules of a site, as it only reads.
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
    """Watch while the block lasts; each that was seen is in `file` then, once."""
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
