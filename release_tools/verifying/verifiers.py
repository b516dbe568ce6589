"""Who judges a signature: this program, the `minisign` program, or both.

A verifier sees the signed bytes once, in pieces, while they are hashed, so that
what was judged is what was read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from release_tools.signing.keys import candidates, check_signature
from release_tools.signing.minisign import PublicKey, Signature
from release_tools.verifying.verifier import Judging, Verifier


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

    beside = NativeVerifier(keys) if name == "both" else None
    with open_system_verifier(keys, beside) as verifier:
        yield verifier
