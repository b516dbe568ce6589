"""What judges a signature while the signed file is read."""

from __future__ import annotations

import contextlib
from typing import Protocol

from release_tools.signing.minisign import Signature


class Judging(Protocol):
    """One signature being judged."""

    def feed(self, chunk: memoryview) -> None:
        """Take the next piece of the signed file."""

    def conclude(self, blake2b: bytes) -> None:
        """Raise `SignatureError` unless the signature holds; `blake2b` is the file's digest."""


class Verifier(Protocol):
    """Opens a `Judging` for a signature file's bytes and what was parsed from them."""

    def judging(
        self, data: bytes, signature: Signature
    ) -> contextlib.AbstractContextManager[Judging]:
        """The judging of one signature; raises `SignatureError` when no key is known for it."""
