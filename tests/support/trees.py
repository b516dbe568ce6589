"""The content of a folder, for comparing it before and after."""

from __future__ import annotations

import stat
from pathlib import Path


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below `folder`, with its mode and its content (the target of a link, or bytes)."""
    if not folder.exists():
        return {}
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = b""
        if stat.S_ISREG(mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(mode):
            content = str(path.readlink()).encode()
        found[str(path.relative_to(folder))] = (mode, content)
    return found


def hidden(folder: Path) -> list[str]:
    """The hidden files and folders below `folder`, with which unfinished writes begin."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))
