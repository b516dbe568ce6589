"""Running programs at a terminal, as people do."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.releases import clean_environment, program


def at_a_terminal(
    folder: Path,
    *args: str | Path,
    name: str = "release-tools",
    typed: str = "",
    env: Mapping[str, str] | None = None,
    columns: int = 120,
) -> tuple[int, str]:
    """Run a program at a pseudo-terminal; return its status and what it showed.

    The text in `typed` is available before the program asks for it.
    """
    terminal, side = pty.openpty()
    termios.tcsetwinsize(side, (24, columns))
    environment = {
        name: value
        for name, value in clean_environment().items()
        if name not in ("CI", "TERM", "COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE")
    }
    process = subprocess.Popen(
        [program(name), *args],
        cwd=folder,
        env=environment | {"TERM": "xterm-256color", "COLUMNS": str(columns)} | dict(env or {}),
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
    )
    os.close(side)
    os.write(terminal, typed.encode())
    shown = bytearray()
    deadline = time.monotonic() + 30
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            shown += data
        return process.wait(10), shown.decode()
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
