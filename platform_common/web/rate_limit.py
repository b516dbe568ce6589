"""How often somebody may ask: a count for each address, in a table that cannot grow."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from platform_common.net.networks import address_of

_MOST_ADDRESSES = 1024
# One household has one such network of IPv6, and all the addresses in it.
_IPV6_PREFIX = 64


class RateLimit:
    """At most `most` in `window_s` seconds from one address.

    There is no limit for this machine itself, unless it is `everybody`'s; it is then one
    address, and so is what is none.
    """

    def __init__(
        self,
        most: int,
        window_s: float,
        *,
        everybody: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._everybody = everybody
        self._window_s = window_s
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    def wait_s(self, address: str) -> float:
        """Count a request of `address`: 0, or in how many seconds it would be in time."""
        who = _household(address)
        if who is None:
            if not self._everybody:
                return 0
            who = ""
        now = self._clock()
        with self._lock:
            times = self._seen.setdefault(who, deque(maxlen=self._most))
            self._seen.move_to_end(who)
            # Who has asked least recently is forgotten first.
            if len(self._seen) > _MOST_ADDRESSES:
                self._seen.popitem(last=False)
            if len(times) == self._most and now - times[0] < self._window_s:
                return times[0] + self._window_s - now
            times.append(now)
        return 0


def _household(address: str) -> str | None:
    """What counts as one address; None for this machine, also through a socket of its own."""
    found = address_of(address.partition("%")[0])
    if found is None or found.is_loopback:
        return None
    if found.version == 6:
        return str(ipaddress.ip_network((found, _IPV6_PREFIX), strict=False))
    return str(found)
