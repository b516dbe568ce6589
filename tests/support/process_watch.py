"""Every command line and every environment on this machine, as fast as they can be read.

`python -m tests.support.process_watch FILE`: adds each one that it sees for the first time to
FILE, until it is ended.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from dev.distributions import ROOT
from tests.support.network import end

_NAMES = ("cmdline", "environ")


@contextlib.contextmanager
def watched(file: Path) -> Iterator[None]:
    """Watch while the block lasts; what was seen is in `file` then."""
    process = subprocess.Popen(
        # Without the modules of a site, as it only reads.
        [sys.executable, "-S", __file__, file],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
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


def main(file: str) -> None:
    """Watch for ever."""
    seen: set[bytes] = set()
    rounds = 0
    with open(file, "wb", buffering=0) as log:
        while True:
            for name in filter(str.isdigit, (entry.name for entry in os.scandir("/proc"))):
                for kind in _NAMES:
                    with contextlib.suppress(OSError):
                        found = Path("/proc", name, kind).read_bytes()
                        if found not in seen:
                            seen.add(found)
                            log.write(found + b"\n")
            rounds += 1
            if rounds == 1:
                os.write(1, b".")


if __name__ == "__main__":
    main(sys.argv[1])
