"""An open file of an origin, and why there is none."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import unquote, urlsplit

from platform_common.errors import UnreadableError

# A stream that is slower than this for the length of the time-out is given up.
SLOWEST_BYTES_PER_S = 1024


class MissingError(UnreadableError):
    """There is no such file at the origin."""


class SlowError(UnreadableError):
    """The origin sends too slowly, or has stopped sending."""


class RefusedUrlError(UnreadableError):
    """A URL that must not be followed from here."""


class Stream(Protocol):
    """An open file of an origin; `size` is what the origin says, if it does."""

    size: int | None

    def readinto(self, buffer: memoryview) -> int:
        """Fill some of `buffer`; the number of bytes, 0 at the end."""


def without_secrets(url: str) -> str:
    """`url` without a user name, password, query or fragment that it may carry."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def show_url(url: str) -> str:
    """`url` for a message: without secrets, and a file as its path."""
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" else without_secrets(url)
