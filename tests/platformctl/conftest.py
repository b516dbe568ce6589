"""The control CLI run by another command, or at a terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.devices import Device
from tests.support.releases import clean_environment
from tests.support.terminals import at_a_terminal


def run_on(device: Device, *words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run any command for that device, such as the program under strace."""
    return subprocess.run(
        [*map(str, words)],
        env=clean_environment() | {"PLATFORM_ROOT": str(device.root)},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def run_at_terminal(
    device: Device, *args: str, typed: str = "", columns: int = 120, **environment: str
) -> tuple[int, str]:
    """Run the program at a terminal; return its status and what it showed."""
    env = {"PLATFORM_ROOT": str(device.root)} | environment
    return at_a_terminal(
        device.root, *args, name="platformctl", typed=typed, env=env, columns=columns
    )
