"""Checking minisign signatures: the key id, then the signature, then the trusted comment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from nacl import bindings
from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

from release_tools.signing.minisign import PublicKey, Signature, SignatureError, show_key_id

_GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


def matching_keys(keys: Sequence[PublicKey], signature: Signature) -> list[PublicKey]:
    """Return the keys with the signature's key id; raises `SignatureError` if there is none."""
    matching = [key for key in keys if key.key_id == signature.key_id]
    if not matching:
        trusted = ", ".join(sorted({show_key_id(key.key_id) for key in keys}))
        raise SignatureError(
            "E_KEY",
            f"the signature was made with key {show_key_id(signature.key_id)},"
            f" but only {trusted} is trusted",
        )
    return matching


def check_signature(keys: Sequence[PublicKey], signature: Signature, blake2b: bytes) -> PublicKey:
    """Return the key of `keys` that signed the file with that BLAKE2b-512 digest.

    Raises `SignatureError`, also for a legacy signature.
    """
    matching = matching_keys(keys, signature)
    if signature.legacy:
        raise SignatureError(
            "E_SIG",
            "the signature is of the legacy kind, which does not hash the file first",
            hint="Sign again with a current minisign or with release-tools sign.",
        )
    return _signer(
        matching, signature, lambda key: _ed25519_holds(key, signature.signature, blake2b)
    )


def check_legacy_signature(
    keys: Sequence[PublicKey], signature: Signature, read: Callable[[], Iterable[memoryview]]
) -> PublicKey:
    """Like `check_signature` for a legacy signature; `read` returns the file's chunks."""
    return _signer(
        matching_keys(keys, signature),
        signature,
        lambda key: _legacy_holds(key, signature.signature, read()),
    )


def _signer(
    keys: Sequence[PublicKey], signature: Signature, holds: Callable[[PublicKey], bool]
) -> PublicKey:
    # Key ids are random and can be forged, so several trusted keys may share one.
    for key in keys:
        if holds(key):
            commented = signature.signature + signature.trusted_comment
            if not _ed25519_holds(key, signature.global_signature, commented):
                raise SignatureError(
                    "E_SIG", "the trusted comment does not belong to this signature"
                )
            return key
    raise SignatureError("E_SIG", "the signature does not match the file")


def _ed25519_holds(key: PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        VerifyKey(key.point).verify(message, signature)
    except CryptoError:
        return False
    return True


def _legacy_holds(key: PublicKey, signature: bytes, chunks: Iterable[memoryview]) -> bool:
    """Check an Ed25519 signature of the file itself, without holding the file in memory.

    RFC 8032, section 5.1.7, hashes the message only once: S·B = R + SHA-512(R ‖ A ‖ M)·A.
    """
    r, s = signature[:32], signature[32:]
    if int.from_bytes(s, "little") >= _GROUP_ORDER:
        return False
    digest = hashlib.sha512(r + key.point)
    for chunk in chunks:
        digest.update(chunk)
    try:
        scalar = bindings.crypto_core_ed25519_scalar_reduce(digest.digest())
        product = bindings.crypto_scalarmult_ed25519_noclamp(scalar, key.point)
        right = bindings.crypto_core_ed25519_add(r, product)
        return bindings.crypto_scalarmult_ed25519_base_noclamp(s) == right
    except CryptoError:
        return False
