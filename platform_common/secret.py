"""Secrets in memory: a value that no message, log or traceback shows."""

from __future__ import annotations

import re
import resource
from typing import NoReturn

from platform_common.errors import PlatformError

_LONGEST = 4096
# Characters that systemd, our reader and an HTTP header all take unchanged.
_UNFIT = re.compile(r"[^\x21-\x7e]|[\"'\\`]")
_SHOWN = "•••"
_PREFIX_LENGTH = 6


class SecretError(PlatformError):
    """A value that cannot be a secret; the message does not contain it."""


class Secret:
    """A secret value; only `reveal` shows it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself, to send or store it."""
        return self._value

    def masked(self) -> str:
        """Enough of the value to recognise it: at most a quarter, then `…`."""
        return self._value[: min(_PREFIX_LENGTH, len(self._value) // 4)] + "…"

    def __repr__(self) -> str:
        return _SHOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written anywhere as an object")


def parse_secret(text: str, what: str = "The key") -> Secret:
    """Parse `text`, without the blanks at its ends.

    1 to 4,096 printable ASCII characters without blanks, quotes, backslash or
    back-tick (docs/reference/records.md, "secrets.env"). Raises `SecretError`.
    """
    secret = Secret(text.strip(" \t\r\n"))
    # So that no variable of the traceback holds the value.
    del text
    if not secret.reveal():
        raise SecretError(f"{what} is empty")
    if len(secret.reveal()) > _LONGEST:
        raise SecretError(f"{what} is longer than {_LONGEST:,} characters")
    if _UNFIT.search(secret.reveal()):
        raise SecretError(
            f"{what} contains a character that no key has"
            " (a blank, a line feed, a quote, a backslash, a back-tick, or one outside ASCII)",
            hint="Copy it again, without anything around it.",
        )
    return secret


def keep_out_of_core_files() -> None:
    """Disable core files, which would contain secrets, for this process and its children."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    # 1, not 0: with 0, Linux still pipes the memory to a crash collector (`do_coredump`).
    resource.setrlimit(resource.RLIMIT_CORE, (0 if most == 0 else 1, most))
