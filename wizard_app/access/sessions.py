"""The launch token, which opens one session, and the sessions."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Protocol

LIFETIME_S = 3600
_TOKEN_BYTES = 32
_MOST_SESSIONS = 64
_MOST_SPENT = 256


class Tokens(Protocol):
    """Where the launch token is stored; there is at most one."""

    def spend(self, matches: Callable[[str], bool]) -> bool:
        """Remove the token if it exists and `matches`; return whether this call did."""


def new_token() -> str:
    """Return a random name for a launch token or a session."""
    return secrets.token_hex(_TOKEN_BYTES)


def boot_time() -> float:
    """Seconds since boot, including sleep; setting the clock does not change it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SessionStore:
    """The launch token and the sessions of one wizard; thread-safe.

    Only digests of sessions are stored, and the token only in `tokens`.
    """

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = boot_time) -> None:
        self._tokens = tokens
        self._clock = clock
        self._lock = threading.Lock()
        # Digest to end of the session, oldest first.
        self._sessions: OrderedDict[bytes, float] = OrderedDict()
        self._spent: OrderedDict[bytes, None] = OrderedDict()
        self._last_end: float | None = None

    def enter(self, token: str) -> str | None:
        """Spend the launch token and return the name of a new session, or None."""
        presented = _digest(token)

        def matches(expected: str) -> bool:
            return hmac.compare_digest(presented, _digest(expected))

        with self._lock:
            # A spent token that could not be removed still counts as spent.
            if presented in self._spent or not self._tokens.spend(matches):
                return None
            self._spent[presented] = None
            if len(self._spent) > _MOST_SPENT:
                self._spent.popitem(last=False)
            session = new_token()
            self._sessions[_digest(session)] = self._clock() + LIFETIME_S
            if len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
            return session

    def was_used(self, token: str) -> bool:
        """Whether a session was opened with this token."""
        with self._lock:
            return _digest(token) in self._spent

    def is_live(self, sessions: Iterable[str]) -> bool:
        """Whether one of these names an open session."""
        return self.left_s(sessions) > 0

    def left_s(self, sessions: Iterable[str]) -> float:
        """How many seconds the longest of these sessions still lasts; 0 for none."""
        digests = {_digest(session) for session in sessions}
        with self._lock:
            ends = [self._sessions[digest] for digest in digests & self._sessions.keys()]
            return max(0, max(ends, default=0) - self._clock())

    def end(self, sessions: Iterable[str]) -> None:
        """End these sessions."""
        digests = {_digest(session) for session in sessions}
        with self._lock:
            self._forget_ended()
            if not digests.isdisjoint(self._sessions):
                self._last_end = self._clock()
            for digest in digests:
                self._sessions.pop(digest, None)

    @property
    def is_used(self) -> bool:
        """Whether any session is open."""
        with self._lock:
            self._forget_ended()
            return bool(self._sessions)

    def alone_s(self) -> float:
        """How long there has been no session; 0 while there is one, or before the first."""
        with self._lock:
            self._forget_ended()
            if self._sessions or self._last_end is None:
                return 0
            return self._clock() - self._last_end

    def _forget_ended(self) -> None:
        now = self._clock()
        while self._sessions:
            digest, end = next(iter(self._sessions.items()))
            if now < end:
                break
            del self._sessions[digest]
            self._last_end = max(self._last_end or end, end)


def _digest(text: str) -> bytes:
    # A request may contain anything, such as a lone surrogate, which cannot be encoded.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
