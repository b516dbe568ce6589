"""Waiting for other programs and threads."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator


def wait_until(
    condition: Callable[[], object], timeout_s: float = 60, *, pause_s: float = 0.001
) -> None:
    """Wait until `condition` is true, checking it with these pauses."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError("what was waited for did not come")
        time.sleep(pause_s)


@contextlib.contextmanager
def no_thread_left(*, patience_s: float = 10) -> Iterator[None]:
    """Fail unless every thread that starts in the block ends, at the latest soon after it."""
    before = set(threading.enumerate())
    yield
    wait_until(lambda: set(threading.enumerate()) <= before, patience_s)
