"""An open file at an origin, and the errors of opening and reading one."""

from __future__ import annotations

from typing import Protocol

from platform_common.errors import AccessError

# A stream that stays slower than this for the whole timeout is given up.
SLOWEST_BYTES_PER_S = 1024


class MissingError(AccessError):
    """The origin has no such file."""


class SlowError(AccessError):
    """The origin sends too slowly, or has stopped sending."""


class RefusedUrlError(AccessError):
    """A URL that the document naming it must not lead to."""


class Stream(Protocol):
    """An open file at an origin; `size` is what the origin announces, or None."""

    size: int | None

    def readinto(self, buffer: memoryview) -> int:
        """Fill part of `buffer` and return the number of bytes; 0 at the end."""
