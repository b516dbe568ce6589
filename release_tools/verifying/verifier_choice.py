"""The verifiers to choose from: our own code, the `minisign` program, or both.

A verifier sees the signed bytes once, while they are being hashed, so the bytes that are
verified are the bytes that were read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from release_tools.signing.minisign import PublicKey, Signature, SignatureError
from release_tools.signing.signature_check import check_signature, matching_keys
from release_tools.verifying.system_verifier import open_system_verifier
from release_tools.verifying.verifier_protocol import SignatureCheck, Verifier


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


@dataclass(frozen=True, slots=True)
class BothVerifiers:
    """Accepts only signatures that both verifiers accept."""

    native: Verifier
    system: Verifier

    @contextlib.contextmanager
    def check(self, data: bytes, signature: Signature) -> Iterator[SignatureCheck]:
        """See `Verifier`."""
        with (
            self.native.check(data, signature) as native,
            self.system.check(data, signature) as system,
        ):
            yield _BothChecks(native, system)


@dataclass(frozen=True, slots=True)
class _BothChecks:
    native: SignatureCheck
    system: SignatureCheck

    def update(self, chunk: memoryview) -> None:
        self.system.update(chunk)

    def finish(self, blake2b: bytes) -> None:
        native, system = _refusal(self.native, blake2b), _refusal(self.system, blake2b)
        if native is not None and system is not None:
            raise native
        refusal = native or system
        if refusal is not None and refusal.code == "E_SIG":
            raise SignatureError("E_VERIFIER", f"the two verifiers disagree: {refusal.message}")
        if refusal is not None:
            raise refusal


def _refusal(check: SignatureCheck, blake2b: bytes) -> SignatureError | None:
    try:
        check.finish(blake2b)
    except SignatureError as error:
        return error
    return None


@contextlib.contextmanager
def open_verifier(name: str, keys: Sequence[PublicKey]) -> Iterator[Verifier]:
    """Open the verifier of that name (`VERIFIER_NAMES`) until the block ends."""
    native = NativeVerifier(keys)
    if name == "native":
        yield native
        return
    with open_system_verifier(keys) as system:
        yield system if name == "system" else BothVerifiers(native, system)
