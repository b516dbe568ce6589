"""Checking signatures, without the minisign program."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

from release_tools.signing.minisign import (
    LEGACY,
    PREHASHED,
    FormatError,
    PublicKey,
    Signature,
    SignatureError,
    prehash,
    show_key_id,
)
from release_tools.signing.secret_key import SecretKey
from release_tools.signing.signature_check import (
    check_legacy_signature,
    check_signature,
    matching_keys,
)
from tests.support.properties import examples
from tests.support.signatures import MESSAGE, secret_key, signed, signed_legacy

KEY = secret_key().public_key
FILE = signed().render()


def check(key: PublicKey, signature: Signature, message: bytes) -> None:
    """Raise `SignatureError` unless the signature is good, in either form."""
    if signature.legacy:
        check_legacy_signature([key], signature, lambda: [memoryview(message)])
    else:
        check_signature([key], signature, prehash(message))


def test_a_good_signature_is_accepted() -> None:
    check(KEY, Signature.parse(FILE), MESSAGE)
    check(KEY, signed_legacy(), MESSAGE)


@pytest.mark.parametrize("make", [signed, signed_legacy])
def test_the_key_id_is_checked_before_the_signature(make: Callable[..., Signature]) -> None:
    other = replace(make(key=secret_key("other")), signature=bytes(64))
    with pytest.raises(SignatureError) as caught:
        check(KEY, other, b"")
    assert caught.value.code == "E_KEY"
    assert show_key_id(other.key_id) in caught.value.message
    assert show_key_id(KEY.key_id) in caught.value.message


def test_neither_form_of_signature_is_accepted_as_the_other() -> None:
    with pytest.raises(SignatureError, match="legacy kind") as caught:
        check_signature([KEY], signed_legacy(), prehash(MESSAGE))
    assert caught.value.code == "E_SIG"
    with pytest.raises(SignatureError, match="does not match the file"):
        check(KEY, replace(signed(), algorithm=LEGACY), MESSAGE)


@pytest.mark.parametrize("make", [signed, signed_legacy])
def test_rel_21_a_changed_trusted_comment_is_refused(make: Callable[[], Signature]) -> None:
    edited = replace(make(), trusted_comment=b"file:another")
    with pytest.raises(SignatureError, match="trusted comment does not belong") as caught:
        check(KEY, edited, MESSAGE)
    assert caught.value.code == "E_SIG"
    # The comment of another signature by the same key is refused, too.
    other = signed(b"other message", "file:other")
    swapped = replace(edited, global_signature=other.global_signature)
    with pytest.raises(SignatureError, match="trusted comment does not belong"):
        check(KEY, replace(swapped, trusted_comment=other.trusted_comment), MESSAGE)


SMALL_ORDER_POINTS = {
    "zero": "00" * 32,
    "identity": "01" + "00" * 31,
    "order 2": "ec" + "ff" * 30 + "7f",
    "order 8": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "order 8, another": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "p": "ed" + "ff" * 30 + "7f",
    "p + 1": "ee" + "ff" * 30 + "7f",
}
_BASE_POINT = bytes([0x58]) + b"\x66" * 31


@pytest.mark.parametrize("point", SMALL_ORDER_POINTS.values(), ids=SMALL_ORDER_POINTS)
@pytest.mark.parametrize("algorithm", [PREHASHED, LEGACY], ids=["prehashed", "legacy"])
def test_a_public_key_of_small_order_is_refused(point: str, algorithm: bytes) -> None:
    # With the identity as key, R = B and S = 1 fit every message unless the order is checked.
    forged = _BASE_POINT + (1).to_bytes(32, "little")
    signature = Signature(algorithm, KEY.key_id, forged, b"", forged)
    weak = PublicKey(KEY.key_id, bytes.fromhex(point))
    with pytest.raises(SignatureError) as caught:
        check(weak, signature, MESSAGE)
    assert caught.value.code == "E_SIG"


GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


def _with_second_s(signature: bytes) -> bytes:
    s = int.from_bytes(signature[32:], "little") + GROUP_ORDER
    return signature[:32] + s.to_bytes(32, "little")


def test_a_signature_has_no_second_encoding() -> None:
    good, old = signed(), signed_legacy()
    of_comment = replace(good, global_signature=_with_second_s(good.global_signature))
    with pytest.raises(SignatureError, match="does not match the file"):
        check(KEY, replace(good, signature=_with_second_s(good.signature)), MESSAGE)
    with pytest.raises(SignatureError, match="trusted comment does not belong"):
        check(KEY, of_comment, MESSAGE)
    with pytest.raises(SignatureError, match="does not match the file"):
        check(KEY, replace(old, signature=_with_second_s(old.signature)), MESSAGE)


@examples(100)
@given(st.binary(max_size=300), st.integers(1, 64), st.none() | st.integers(0, 64 * 8 - 1))
def test_a_legacy_signature_is_checked_as_pynacl_does(
    message: bytes, step: int, flipped: int | None
) -> None:
    signature = signed_legacy(message)
    if flipped is not None:
        body = bytearray(signature.signature)
        body[flipped // 8] ^= 1 << flipped % 8
        # The comment is signed again, so that the result is that of the first signature.
        of_comment = secret_key().sign(bytes(body) + signature.trusted_comment)
        signature = replace(signature, signature=bytes(body), global_signature=of_comment)
    pieces = [memoryview(message)[at : at + step] for at in range(0, len(message), step)]
    good = flipped is None
    with contextlib.nullcontext() if good else pytest.raises(CryptoError):
        VerifyKey(KEY.point).verify(message, signature.signature)
    with contextlib.nullcontext() if good else pytest.raises(SignatureError):
        check_legacy_signature([KEY], signature, lambda: pieces)


# One bit.


def refused(data: bytes, digest: bytes) -> bool:
    """Whether `data` is refused as the signature of a file in a release with that digest."""
    try:
        signature = Signature.parse(data)
        check_signature([KEY], signature, digest)
    except (FormatError, SignatureError):
        return True
    return bool(signature.oddities)


def test_every_bit_of_a_signature_file_matters_except_in_the_untrusted_comment() -> None:
    digest = prehash(MESSAGE)
    unsigned = range(len(b"untrusted comment: "), FILE.index(b"\n"))
    assert not refused(FILE, digest)
    for at, bit in itertools.product(range(len(FILE) - 1), range(8)):
        changed = bytearray(FILE)
        changed[at] ^= 1 << bit
        assert refused(bytes(changed), digest) or at in unsigned


def test_every_bit_and_the_length_of_the_signed_file_and_every_bit_of_the_public_key_matter() -> (
    None
):
    message, raw = bytearray(b"\x5a" * 64), bytearray(KEY.key_id + KEY.point)
    signature = signed(bytes(message))
    for data in (message, raw):
        for at, bit in itertools.product(range(len(data)), range(8)):
            data[at] ^= 1 << bit
            with pytest.raises(SignatureError):
                check(PublicKey(bytes(raw[:8]), bytes(raw[8:])), signature, bytes(message))
            data[at] ^= 1 << bit
    good = bytes(message)
    for other in (good[:-1], good + b"\0", good[1:], b"", good * 2):
        with pytest.raises(SignatureError, match="does not match the file"):
            check(KEY, signature, other)
    check(KEY, signature, good)


# Several keys.

OLD, NEW, STRANGER = (secret_key(name) for name in ("old", "new", "stranger"))
DIGEST = prehash(MESSAGE)
ROTATION = {
    "old only, signed by old": ([OLD], OLD, True),
    "old only, signed by new": ([OLD], NEW, False),
    "old and new, signed by old": ([OLD, NEW], OLD, True),
    "old and new, signed by new": ([OLD, NEW], NEW, True),
    "new and old, signed by new": ([NEW, OLD], NEW, True),
    "new only, signed by new": ([NEW], NEW, True),
    "new only, signed by old": ([NEW], OLD, False),
    "old and new, signed by a stranger": ([OLD, NEW], STRANGER, False),
    "the same key twice": ([OLD, OLD], OLD, True),
}


@pytest.mark.parametrize(("trusted", "signer", "good"), ROTATION.values(), ids=ROTATION)
def test_rel_26_a_signature_needs_one_of_the_trusted_keys(
    trusted: list[SecretKey], signer: SecretKey, *, good: bool
) -> None:
    keys = [secret.public_key for secret in trusted]
    signature = signed(key=signer)
    if good:
        assert check_signature(keys, signature, DIGEST).key_id == signer.key_id
        return
    with pytest.raises(SignatureError) as caught:
        check_signature(keys, signature, DIGEST)
    assert caught.value.code == "E_KEY"
    for key in keys:
        assert show_key_id(key.key_id) in caught.value.message


@pytest.mark.parametrize("good_first", [True, False])
def test_rel_26_the_signature_decides_between_two_keys_with_the_same_id(
    *, good_first: bool
) -> None:
    twin = secret_key("twin", key_id=OLD.key_id).public_key
    keys = [OLD.public_key, twin] if good_first else [twin, OLD.public_key]
    signature = signed(key=OLD)
    assert matching_keys(keys, signature) == keys
    assert check_signature(keys, signature, DIGEST) == OLD.public_key
    with pytest.raises(SignatureError) as caught:
        check_signature(keys, signature, prehash(b"other"))
    assert caught.value.code == "E_SIG"


def test_rel_26_an_untrusted_key_with_a_trusted_id_is_refused() -> None:
    forged = signed(key=secret_key("stranger", key_id=OLD.key_id))
    with pytest.raises(SignatureError) as caught:
        check_signature([OLD.public_key, NEW.public_key], forged, DIGEST)
    assert caught.value.code == "E_SIG"
