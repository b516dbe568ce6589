"""The root of every error that a person may see."""

from __future__ import annotations

import errno
import os


class PlatformError(Exception):
    """A failure told in one sentence, with what to do next where that helps.

    `message` is a complete sentence without its full stop and never holds a
    secret; `hint` is a second one, or empty.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class WrongUsageError(PlatformError):
    """A value, or a file of settings, that cannot be used as it was given."""


class UnreadableError(PlatformError):
    """Something could not be read, written or reached."""

    @classmethod
    def of(cls, what: object, error: OSError) -> UnreadableError:
        """The error for `what` (a path or an address) in the system's own words."""
        forbidden = error.errno in (errno.EACCES, errno.EPERM) and os.geteuid() != 0
        hint = "Run this as root, or as another user who may do that." if forbidden else ""
        return cls(f"{what}: {error.strerror or error}", hint=hint)
