"""Forgets secrets in memory when nobody has had a session for an hour."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

ALONE_S = 3600
# Checked regularly, because time during which the device sleeps counts too.
_LOOK_AGAIN_S = 60.0


class SecretExpiry:
    """Calls `forget` when, according to `alone_s`, there has been no session for an hour."""

    def __init__(
        self,
        alone_s: Callable[[], float],
        forget: Callable[[], None],
        *,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._alone_s = alone_s
        self._forget = forget
        self._sleep = sleep
        self._lock = threading.Lock()
        self._watched = False

    def check(self) -> bool:
        """Call `forget` if it is time; return whether it was."""
        if self._alone_s() < ALONE_S:
            return False
        self._forget()
        return True

    def watch(self) -> None:
        """Start a thread that checks even if no more requests come."""
        with self._lock:
            if self._watched:
                return
            self._watched = True
        threading.Thread(target=self._wait, name="wiping", daemon=True).start()

    def _wait(self) -> None:
        while True:
            self._sleep(_LOOK_AGAIN_S)
            with self._lock:
                if self.check():
                    self._watched = False
                    return
