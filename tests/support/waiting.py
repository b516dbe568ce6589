"""Waiting for what other programs do."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], timeout_s: float = 60) -> None:
    """Return once `condition` is true."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("what was waited for did not come")
        time.sleep(0.001)
