"""Reads a key from standard input, never from an argument, which every user can see."""

from __future__ import annotations

import os
import select
import time
from typing import NamedTuple

from platform_common.errors import AccessError, PlatformError
from platform_common.secret import Secret, SecretError, parse_secret

_LINE_LIMIT_BYTES = 8 << 10
_LINES_LIMIT_BYTES = 32 << 10
_TIMEOUT_S = 60.0
# How long to wait for another line while the pipe stays open.
_MORE_TIMEOUT_S = 0.3


class GivenKey(NamedTuple):
    """A key in place of the stored one, and values of other variables, by name."""

    key: Secret
    others: dict[str, Secret]


def read_key(descriptor: int, *, timeout_s: float = _TIMEOUT_S) -> Secret:
    """Read the key, one line; raises `PlatformError`, which never contains it."""
    data = _received(descriptor, timeout_s, _LINE_LIMIT_BYTES, one_line=True)
    if _goes_on(data):
        # So that no variable of the traceback holds the key.
        del data
        raise SecretError("The key contains a line feed, which no key does")
    return parse_secret(data.decode("latin-1"))


def read_given(descriptor: int, *, timeout_s: float = _TIMEOUT_S) -> GivenKey:
    """Read the key on the first line, and further lines `NAME=value`.

    The names are not checked. Raises `PlatformError`, which contains none of the input.
    """
    data = _received(descriptor, timeout_s, _LINES_LIMIT_BYTES, one_line=False)
    first, *rest = data.decode("latin-1").split("\n")
    pairs = [line.strip().partition("=") for line in rest if line.strip()]
    del data, rest
    if not all(name and equals for name, equals, _ in pairs):
        del first, pairs
        raise SecretError("A line after the key is not NAME=value")
    return GivenKey(parse_secret(first), {name: Secret(value) for name, _, value in pairs})


def _received(descriptor: int, timeout_s: float, limit_bytes: int, *, one_line: bool) -> bytes:
    """Read until the end of input, or until nothing follows a line; stops at a size limit."""
    deadline = time.monotonic() + timeout_s
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = b""
    while len(data) <= limit_bytes and not (one_line and _goes_on(data)):
        whole = data.endswith(b"\n")
        left_s = max(0.0, deadline - time.monotonic())
        if not poll.poll((min(left_s, _MORE_TIMEOUT_S) if whole else left_s) * 1000):
            if whole:
                break
            del data
            raise PlatformError(f"No line came on standard input in {timeout_s:g} s")
        try:
            chunk = os.read(descriptor, limit_bytes)
        except OSError as error:
            raise AccessError.of("standard input", error) from None
        if not chunk:
            break
        data += chunk
    return data


def _goes_on(data: bytes) -> bool:
    return bool(data.partition(b"\n")[2].strip())
