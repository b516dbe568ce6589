"""How systemd itself reads an `EnvironmentFile=`.

Its generator for `environment.d` uses the same parser.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

GENERATOR = "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator"


def read_by_systemd(folder: Path, data: bytes) -> dict[bytes, bytes] | None:
    """The variables that systemd reads from these bytes; None if it refuses the file."""
    file = folder / "environment.d/x.conf"
    file.parent.mkdir(exist_ok=True)
    # Only the generator replaces $NAME; there $$ is a dollar.
    file.write_bytes(data.replace(b"$", b"$$"))
    done = subprocess.run(
        [GENERATOR],
        env={"XDG_CONFIG_HOME": str(folder), "HOME": "/nonexistent"},
        capture_output=True,
        timeout=10,
        check=False,
    )
    if done.returncode:
        return None
    return dict(_assignment(line) for line in done.stdout.splitlines() if b"=" in line)


def _assignment(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b"=")
    if value.startswith(b'"'):
        value = re.sub(rb"\\(.)", rb"\1", value[1:-1])
    return name, value
