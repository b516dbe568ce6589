"""Folders in memory: for what a slow disk would say nothing more about, and take its time."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_SHARED = Path("/dev/shm")
# Containers have little or none of it; then the folder is where other temporary files are.
_ENOUGH_BYTES = 48 << 20


@contextlib.contextmanager
def in_memory() -> Iterator[Path]:
    """A folder, in memory where there is enough of that, which every user may enter."""
    enough = _SHARED.is_dir() and shutil.disk_usage(_SHARED).free > _ENOUGH_BYTES
    with tempfile.TemporaryDirectory(dir=_SHARED if enough else None) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
