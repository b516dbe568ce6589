"""Watching that work leaves no thread behind."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

_PATIENCE_S = 10.0


@contextlib.contextmanager
def no_thread_left(*, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Fail unless every thread that starts in the block ends, at the latest soon after it."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + patience_s
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not left
