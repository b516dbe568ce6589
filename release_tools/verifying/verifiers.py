"""Who judges a signature: this program, the `minisign` program, or both.

A verifier sees the signed bytes once, in pieces, while they are hashed, so that
what was judged is what was read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from release_tools.signing.keys import candidates, check_signature
from release_tools.signing.minisign import PublicKey, Signature


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


class NativeVerifier:
    """Judges with this program's own code."""

    def __init__(self, keys: Sequence[PublicKey]) -> None:
        self._keys = keys

    @contextlib.contextmanager
    def judging(self, data: bytes, signature: Signature) -> Iterator[Judging]:
        """See `Verifier`."""
        candidates(self._keys, signature)
        yield _Native(self._keys, signature)


class _Native:
    def __init__(self, keys: Sequence[PublicKey], signature: Signature) -> None:
        self._keys, self._signature = keys, signature

    def feed(self, chunk: memoryview) -> None:
        pass

    def conclude(self, blake2b: bytes) -> None:
        check_signature(self._keys, self._signature, blake2b)


@contextlib.contextmanager
def open_verifier(name: str, keys: Sequence[PublicKey]) -> Iterator[Verifier]:
    """The verifier of that name (`VERIFIER_NAMES`), with what it needs while the block lasts."""
    if name == "native":
        yield NativeVerifier(keys)
        return
    from release_tools.verifying.system_verifier import open_system_verifier

    with open_system_verifier(keys, with_native=name == "both") as verifier:
        yield verifier
