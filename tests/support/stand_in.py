"""Stand-ins for programs on PATH."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def stand_in(folder: Path, name: str, script: str) -> Mapping[str, str]:
    """Write the shell script as the program `name`; return an environment that finds it first."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def path_without(name: str, folder: Path) -> Mapping[str, str]:
    """An environment whose PATH is an empty folder, and so has no program `name`."""
    folder.mkdir(parents=True, exist_ok=True)
    assert not (folder / name).exists()
    return {"PATH": str(folder)}
