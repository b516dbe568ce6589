"""The verifiers to choose from: our own code, the `minisign` program, or both.

A verifier sees the signed bytes once, while they are being hashed, so the bytes that are
verified are the bytes that were read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from release_tools.signing.minisign import PublicKey, Signature
from release_tools.signing.signature_check import check_signature, matching_keys
from release_tools.verifying.verifier import SignatureCheck, Verifier


@dataclass(frozen=True, slots=True)
class NativeVerifier:
    """Checks signatures with our own code."""

    keys: Sequence[PublicKey]

    @contextlib.contextmanager
    def check(self, data: bytes, signature: Signature) -> Iterator[SignatureCheck]:
        """See `Verifier`."""
        matching_keys(self.keys, signature)
        yield _NativeCheck(self.keys, signature)


@dataclass(frozen=True, slots=True)
class _NativeCheck:
    keys: Sequence[PublicKey]
    signature: Signature

    def update(self, chunk: memoryview) -> None:
        pass  # The digest is all that it needs.

    def finish(self, blake2b: bytes) -> None:
        check_signature(self.keys, self.signature, blake2b)


@contextlib.contextmanager
def open_verifier(name: str, keys: Sequence[PublicKey]) -> Iterator[Verifier]:
    """Open the verifier of that name (`VERIFIER_NAMES`) until the block ends."""
    native = NativeVerifier(keys)
    if name == "native":
        yield native
        return
    # Imported here because it brings tempfile and subprocess, which the native verifier does
    # not need (bench: "verify --manifest-only of 50 artefacts").
    from release_tools.verifying.system_verifier import open_system_verifier

    with open_system_verifier(keys, native if name == "both" else None) as verifier:
        yield verifier
