"""Who is let in: the launch token, good for one session, and the sessions."""

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
    """Where the launch token waits: there is one at most."""

    def spend(self, matches: Callable[[str], bool]) -> bool:
        """Remove the token if it is there and `matches`; whether this call did that."""


def new_token() -> str:
    """A launch token, or what names a session: nobody can guess it."""
    return secrets.token_hex(_TOKEN_BYTES)


def boot_time() -> float:
    """Seconds since the device was started: sleep counts, and no clock that is set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Access:
    """The launch token and the sessions of one wizard; safe to be asked from several threads.

    Neither is kept: a session is known by its digest, and the token is where `tokens` has it.
    """

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = boot_time) -> None:
        self._tokens = tokens
        self._clock = clock
        self._lock = threading.Lock()
        # Digest to when the session ends, the oldest first.
        self._sessions: OrderedDict[bytes, float] = OrderedDict()
        self._spent: OrderedDict[bytes, None] = OrderedDict()
        self._last_end: float | None = None

    def enter(self, token: str) -> str | None:
        """The name of a new session for the launch token, which is then spent; else None."""
        presented = _digest(token)

        def matches(expected: str) -> bool:
            return hmac.compare_digest(presented, _digest(expected))

        with self._lock:
            # A token that is spent and could not be removed is spent all the same.
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
        """Whether one of these names a session that goes on."""
        return self.left_s(sessions) > 0

    def left_s(self, sessions: Iterable[str]) -> float:
        """For how many seconds more the longest of these goes on; 0 for none."""
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
        """Whether any session goes on."""
        with self._lock:
            self._forget_ended()
            return bool(self._sessions)

    def alone_s(self) -> float:
        """For how long nobody has had a session; 0 while there is one, or was none yet."""
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
    # Whatever a request held: a lone surrogate is no valid text.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
