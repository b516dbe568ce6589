"""What every verifier of signatures offers."""

from __future__ import annotations

import contextlib
from typing import Protocol

from release_tools.signing.minisign import Signature


class SignatureCheck(Protocol):
    """The check of one signature while the signed file is being read."""

    def update(self, chunk: memoryview) -> None:
        """Take the next piece of the signed file."""

    def finish(self, blake2b: bytes) -> None:
        """Raise `SignatureError` unless the signature holds; `blake2b` is the file's digest."""


class Verifier(Protocol):
    """Starts signature checks."""

    def check(
        self, data: bytes, signature: Signature
    ) -> contextlib.AbstractContextManager[SignatureCheck]:
        """Start checking `signature`, which was parsed from the signature file `data`.

        Raises `SignatureError` if no trusted key has its key id.
        """
