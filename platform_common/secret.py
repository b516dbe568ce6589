"""Secrets in memory: a value that no message, log or traceback shows."""

from __future__ import annotations

import re
import resource
from typing import NoReturn

from platform_common.errors import PlatformError

_LONGEST = 4096
# What systemd's reader, ours and an HTTP header alike take as it stands.
_UNFIT = re.compile(r"[^\x21-\x7e]|[\"'\\`]")
_SHOWN = "•••"
_PREFIX_LENGTH = 6


class SecretError(PlatformError):
    """A value that cannot be a secret; the message does not show it."""


class Secret:
    """A secret value; only `reveal` shows it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself, for whoever must send or store it."""
        return self._value

    def masked(self) -> str:
        """Enough of it to recognise which key this is: at most a quarter of it, then `…`."""
        return self._value[: min(_PREFIX_LENGTH, len(self._value) // 4)] + "…"

    def __repr__(self) -> str:
        return _SHOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written anywhere as an object")


def parse_secret(text: str, what: str = "key") -> Secret:
    """The secret that `text` holds, without the blanks at its ends.

    1 to 4,096 printable ASCII characters without blanks, quotes, backslash or
    back-tick (contract of `secrets.env`). Raises `SecretError`.
    """
    secret = Secret(text.strip(" \t\r\n"))
    # What shows the variables of a traceback finds none that holds it.
    del text
    if not secret.reveal():
        raise SecretError(f"The {what} is empty")
    if len(secret.reveal()) > _LONGEST:
        raise SecretError(f"The {what} is longer than {_LONGEST:,} characters")
    if _UNFIT.search(secret.reveal()):
        raise SecretError(
            f"The {what} holds a character that no key has"
            " (a blank, a line feed, a quote, a backslash, a back-tick, or one outside ASCII)",
            hint="Copy it again, without what surrounds it.",
        )
    return secret


def keep_out_of_core_files() -> None:
    """Have this process, and what it starts, leave no core file, which would hold its secrets."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    # One byte, not none: that also stops Linux from passing the memory on to a program
    # that collects crashes, for which it takes no notice of 0 (`do_coredump`).
    resource.setrlimit(resource.RLIMIT_CORE, (0 if most == 0 else 1, most))
