"""An operation that the root helper runs for callers who are not root."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from platform_common.paths import Paths, Place
from platform_common.root_helper.client import ANSWER_LIMIT_BYTES, OnProgress, ask, socket_for

A = TypeVar("A", bound=Struct)
R = TypeVar("R")
# The second is for setup: 64 KiB of credentials, up to three times that in JSON, and more secrets.
REQUEST_LIMIT_BYTES, LARGEST_REQUEST_BYTES = 16 << 10, 256 << 10


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


NOTHING = Nothing()


@dataclass(frozen=True)
class RemoteOperation(Generic[A, R]):
    """Its name, the types of its arguments and result, and the function that root runs.

    `changes` says, for the log, whether it changes anything. If a variable overrides one of
    `places`, the caller runs the function itself, with its own rights.
    """

    name: str
    arguments: type[A]
    result: type[R]
    run: Callable[[Paths, A, OnProgress], R]
    changes: bool = False
    places: tuple[Place, ...] = ()
    request_limit_bytes: int = REQUEST_LIMIT_BYTES
    answer_limit_bytes: int = ANSWER_LIMIT_BYTES

    def __call__(self, paths: Paths, arguments: A) -> R:
        """Run it, by the helper if there is one and we are not root; raises `PlatformError`."""
        socket = self.helper(paths)
        if socket is None:
            return self.run(paths, arguments, lambda progress: None)
        return self.ask(socket, arguments)

    def helper(self, paths: Paths) -> Path | None:
        """The socket of the helper that runs it; None if this process does."""
        return socket_for(paths, *self.places)

    def ask(self, socket: Path, arguments: A) -> R:
        """Let the helper at `socket` run it; raises `PlatformError`."""
        given = msgspec.to_builtins(arguments)
        return ask(socket, self.name, given, self.result, limit_bytes=self.answer_limit_bytes)
