"""The flash message: kept in memory, shown once, to whoever comes first."""

from __future__ import annotations

import threading

from msgspec import Struct

from platform_common.message import Sentence


class Flash(Struct, frozen=True):
    """How something went; `good` says whether it went well, `doubtful` that there is a but."""

    sentence: Sentence
    good: bool
    doubtful: bool = False


class SingleShot:
    """Room for one message; a later one takes its place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flash: Flash | None = None

    def put(self, flash: Flash) -> None:
        """Leave a message for the next page."""
        with self._lock:
            self._flash = flash

    def take(self) -> Flash | None:
        """The message, which is then gone."""
        with self._lock:
            flash, self._flash = self._flash, None
        return flash
