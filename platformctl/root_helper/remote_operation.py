"""An operation that the root helper carries out for callers who are not root."""

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
# The second is for setting up: 64 KiB of credentials, which JSON may triple, and other secrets.
REQUEST_LIMIT_BYTES, LARGEST_REQUEST_BYTES = 16 << 10, 256 << 10


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


NOTHING = Nothing()


@dataclass(frozen=True)
class RemoteOperation(Generic[A, R]):
    """Its name, the shapes of its arguments and its result, and the function for root.

    `changes` is for the log: whether the operation changes anything. A caller who overrides
    one of the `places` by a variable acts by himself, with his own rights.
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
        """Run it, by the helper if we are not root and there is one; raises `PlatformError`."""
        socket = self.helper(paths)
        if socket is None:
            return self.run(paths, arguments, lambda progress: None)
        return self.ask(socket, arguments)

    def helper(self, paths: Paths) -> Path | None:
        """The socket of the helper that runs it; None where this process does."""
        return socket_for(paths, *self.places)

    def ask(self, socket: Path, arguments: A) -> R:
        """Have the helper at `socket` run it; raises `PlatformError`."""
        given = msgspec.to_builtins(arguments)
        return ask(socket, self.name, given, self.result, limit_bytes=self.answer_limit_bytes)
