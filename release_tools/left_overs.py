"""Removes what this process did not finish."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import AccessError
from platform_common.storage.stale_files import remove_left_overs, signals_held


@contextlib.contextmanager
def nothing_left_in(*directories: Path) -> Iterator[None]:
    """Remove this process's own left-overs when the block fails or is interrupted.

    A signal may interrupt and skip any clean-up inside the block.
    """
    try:
        yield
    except BaseException:
        with signals_held():
            for directory in directories:
                with contextlib.suppress(AccessError):
                    remove_left_overs(directory, of_process=os.getpid())
        raise
