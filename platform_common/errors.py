"""The base of every error that a person may see."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from platform_common.message import Sentence, quoted


class PlatformError(Exception):
    """A failure in one sentence, with what to do next if that helps.

    `message` is a complete sentence without its full stop and never contains a secret; `hint` is
    a second one, or empty. Pages use `said` and `advice`, which are translated if they were
    given as a `Sentence`.
    """

    def __init__(self, message: str | Sentence, *, hint: str | Sentence = "") -> None:
        super().__init__(str(message))
        self.message = str(message)
        self.hint = str(hint)
        self.said = _sentence(message)
        self.advice = _sentence(hint) if hint else None


class WrongUsageError(PlatformError):
    """A value or a settings file that cannot be used."""


class AccessError(PlatformError):
    """Something could not be read, written or reached."""

    @classmethod
    def of(cls, what: object, error: OSError) -> AccessError:
        """Make the error for `what` (a path or an address) from the system's message."""
        forbidden = error.errno in (errno.EACCES, errno.EPERM) and os.geteuid() != 0
        hint = "Run this as root, or as another user who may do that." if forbidden else ""
        return cls(f"{what}: {error.strerror or error}", hint=hint)


@contextlib.contextmanager
def access_error(what: object) -> Iterator[None]:
    """Raise an `OSError` of the block as the `AccessError` of `what`."""
    try:
        yield
    except OSError as error:
        raise AccessError.of(what, error) from error


def _sentence(text: str | Sentence) -> Sentence:
    return text if isinstance(text, Sentence) else quoted(text)
