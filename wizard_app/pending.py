"""Secrets that wait for apply: in memory alone, never written anywhere."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from platform_common.secret import Secret
from platform_common.sentence import Sentence


class Held(NamedTuple):
    """The secrets of one step by name, and what is known of them, such as that they work."""

    secrets: Mapping[str, Secret]
    note: Sentence | None = None


class PendingSecrets:
    """The secrets of each step, by its slug; none of them is ever shown."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, Held] = {}

    def of(self, slug: str) -> Held:
        """What is held for a step; nothing by default."""
        with self._lock:
            return self._held.get(slug, Held({}))

    def put(self, slug: str, held: Held) -> None:
        """Hold these for a step, in place of what was held for it."""
        with self._lock:
            if held.secrets:
                self._held[slug] = held
            else:
                self._held.pop(slug, None)

    def all(self) -> dict[str, Held]:
        """What is held for every step."""
        with self._lock:
            return dict(self._held)

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._held.clear()

    def __repr__(self) -> str:
        return f"PendingSecrets({', '.join(self.all())})"
