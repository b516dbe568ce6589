"""Rate limits: a counter for each address, in a table of bounded size."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from platform_common.net.networks import address_of

_MOST_ADDRESSES = 1024
# A household usually has one IPv6 /64 network, with all its addresses.
_IPV6_PREFIX = 64


class RateLimit:
    """At most `most` requests in `window_s` seconds from one address.

    This machine itself has no limit, unless it is for `everybody`: then it counts as one address,
    and so do requests without an address.
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
        """Count a request of `address`; return 0, or the seconds until it would be allowed."""
        who = _household(address)
        if who is None:
            if not self._everybody:
                return 0
            who = ""
        now = self._clock()
        with self._lock:
            times = self._seen.setdefault(who, deque(maxlen=self._most))
            self._seen.move_to_end(who)
            # The least recently seen address is dropped first.
            if len(self._seen) > _MOST_ADDRESSES:
                self._seen.popitem(last=False)
            if len(times) == self._most and now - times[0] < self._window_s:
                return times[0] + self._window_s - now
            times.append(now)
        return 0


def _household(address: str) -> str | None:
    """The key for an address; None for this machine, including a Unix socket."""
    found = address_of(address.partition("%")[0])
    if found is None or found.is_loopback:
        return None
    if found.version == 6:
        return str(ipaddress.ip_network((found, _IPV6_PREFIX), strict=False))
    return str(found)
