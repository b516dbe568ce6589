"""The flash message: in memory, shown once to the first visitor."""

from __future__ import annotations

import threading

from msgspec import Struct

from platform_common.message import Sentence


class Flash(Struct, frozen=True):
    """A result; `good` means success, `doubtful` adds a reservation."""

    sentence: Sentence
    good: bool
    doubtful: bool = False


class FlashStore:
    """Holds one message; a later one replaces it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flash: Flash | None = None

    def put(self, flash: Flash) -> None:
        """Leave a message for the next page."""
        with self._lock:
            self._flash = flash

    def take(self) -> Flash | None:
        """Return the message and forget it."""
        with self._lock:
            flash, self._flash = self._flash, None
        return flash
