"""Taking a key from standard input, never from an argument, which everybody can see."""

from __future__ import annotations

import os
import select
import time

from platform_common.errors import PlatformError, UnreadableError
from platform_common.secret import Secret, SecretError, parse_secret

_LIMIT_BYTES = 8 << 10
_TIMEOUT_S = 60.0
# Who keeps the pipe open behind its line has this long to send a second one.
_MORE_TIMEOUT_S = 0.3


def read_key(descriptor: int, *, timeout_s: float = _TIMEOUT_S) -> Secret:
    """The key on the one line that a program sends; raises `PlatformError`, which shows none."""
    return parse_secret(_line(descriptor, timeout_s))


def _line(descriptor: int, timeout_s: float) -> str:
    deadline = time.monotonic() + timeout_s
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = b""
    while len(data) <= _LIMIT_BYTES:
        wait_s = _MORE_TIMEOUT_S if b"\n" in data else max(0.0, deadline - time.monotonic())
        if not poll.poll(wait_s * 1000):
            if b"\n" in data:
                break
            raise PlatformError(f"No line came on standard input in {timeout_s:g} s")
        try:
            chunk = os.read(descriptor, _LIMIT_BYTES)
        except OSError as error:
            raise UnreadableError.of("standard input", error) from None
        if not chunk:
            break
        data += chunk
        if data.partition(b"\n")[2].strip():
            # What shows the variables of a traceback finds none that holds the key.
            del data, chunk
            raise SecretError("The key goes on over a line feed, and no key does")
    return data.decode("latin-1")
