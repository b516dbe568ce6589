"""minisign's files and signatures, without the program."""

from __future__ import annotations

import base64
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
    check,
    check_legacy,
    decode_base64,
    prehash,
    show_key_id,
)
from tests.support.properties import examples
from tests.support.signatures import MESSAGE, secret_key, signed, signed_legacy

KEY = secret_key().public_key
FILE = signed().render()
LINES = FILE.split(b"\n")[:4]


def lines(**changed: bytes) -> bytes:
    """The signature file with other lines, by the names first, second, third and fourth."""
    names = ("first", "second", "third", "fourth")
    rows = zip(names, LINES, strict=True)
    return b"\n".join(changed.get(name, line) for name, line in rows) + b"\n"


def judge(key: PublicKey, signature: Signature, message: bytes) -> None:
    """Raise `SignatureError` unless the signature is good, in whichever form it is."""
    if signature.legacy:
        check_legacy(key, signature, [memoryview(message)])
    else:
        check(key, signature, prehash(message))


# Reading back what was written.

_comments = st.binary(max_size=60).map(lambda text: text.translate(None, b"\r\n\0"))


@examples(100)
@given(
    st.sampled_from([LEGACY, PREHASHED]),
    st.binary(min_size=8, max_size=8),
    st.binary(min_size=64, max_size=64),
    _comments,
    st.binary(min_size=64, max_size=64),
)
def test_a_signature_is_read_back(
    algorithm: bytes, key_id: bytes, body: bytes, comment: bytes, of_comment: bytes
) -> None:
    written = Signature(algorithm, key_id, body, comment, of_comment)
    read = Signature.parse(written.render())
    assert replace(read, oddities=()) == written
    assert read.render() == written.render()
    assert read.legacy is (algorithm == LEGACY)


def test_a_key_id_has_sixteen_capital_digits() -> None:
    assert show_key_id(bytes.fromhex("efcdab8967452301")) == "0123456789ABCDEF"
    assert show_key_id(b"\1" + bytes(7)) == "0000000000000001"


@examples(100)
@given(st.binary(min_size=8, max_size=8), st.binary(min_size=32, max_size=32))
def test_a_public_key_is_read_back(key_id: bytes, point: bytes) -> None:
    key = PublicKey(key_id, point)
    assert PublicKey.parse(key.render()) == key
    assert PublicKey.parse_base64(key.render().split(b"\n")[1]) == key


def test_the_words_of_a_comment_are_split_at_tabs() -> None:
    signature = signed(comment="timestamp:5\tfile:a:b c\thashed\tx:")
    assert signature.comment_words == [("timestamp", "5"), ("file", "a:b c"), ("x", "")]


# The signature file, line by line.


@pytest.mark.parametrize(
    "data",
    [
        lines(first=b"untrusted comment: "),
        lines(first=b"untrusted comment: " + b"x" * (1022 - 19)),
        lines(first=b"untrusted comment: \xff\x1b[31m"),
        lines(third=b"trusted comment: "),
        lines(third=b"trusted comment: " + b"x" * 8173),
        *(FILE, FILE[:-1], signed(comment="file:ü 漢字\thashed").render()),
    ],
    ids=["empty", "longest", "any bytes", "no trust", "longest trust", "ours", "no LF", "letters"],
)
def test_a_file_at_the_limits_is_read_without_oddities(data: bytes) -> None:
    assert Signature.parse(data).oddities == ()


@pytest.mark.parametrize(
    ("data", "oddity"),
    [
        (FILE.replace(b"\n", b"\r\n"), "a carriage return"),
        (lines(third=LINES[2] + b"\rinjected"), "a carriage return"),
        (FILE + b"x", "text after its four lines"),
        (FILE + b"\n", "text after its four lines"),
        (FILE + FILE, "text after its four lines"),
        (FILE + b"x" * 100_000, "text after its four lines"),
        (FILE[:-1] + b"\0hidden\n", "a NUL byte"),
        (FILE + b"\0", "a NUL byte"),
        (lines(third=b"trusted comment: \xff"), "a trusted comment that is not UTF-8"),
        (lines(third=b"trusted comment: a\x1b[2J"), "a control character in the trusted comment"),
        (lines(third="trusted comment: a\u202eb".encode()), "a control character in the trusted"),
        (lines(second=LINES[1][:98] + b"B="), "base64 that no signer writes"),
        (lines(fourth=LINES[3][:85] + b"/=="), "base64 that no signer writes"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_rel_19_what_minisign_lets_pass_is_named(data: bytes, oddity: str) -> None:
    assert any(found.startswith(oddity) for found in Signature.parse(data).oddities)


# More of these are judged beside the program, in `tests/interop/test_minisign_program.py`.
REFUSED = {
    "empty": b"",
    "one line": LINES[0] + b"\n",
    "prefix without its blank": lines(first=b"untrusted comment:x"),
    "prefix in capitals": lines(third=LINES[2].replace(b"trusted", b"Trusted")),
    "no trusted comment": lines(third=b"x"),
    "comments swapped": lines(first=LINES[2], third=LINES[0]),
    "first line too long": lines(first=b"untrusted comment: " + b"x" * (1023 - 19)),
    "trusted comment too long": lines(third=b"trusted comment: " + b"x" * 8174),
    "signature line short": lines(second=LINES[1][:-4]),
    "signature line long": lines(second=LINES[1] + b"AAAA"),
    "signature line folded": lines(second=LINES[1][:50] + b"\n" + LINES[1][50:]),
    "signature line not ASCII": lines(second=LINES[1][:98] + "é".encode()),
    "algorithm in lower case": lines(second=base64.b64encode(b"ed" + b"x" * 72)),
    "last line long": lines(fourth=LINES[3] + b"AAAA"),
    "last line of 90": lines(fourth=LINES[3] + b"xx"),
    "last line empty": lines(fourth=b""),
    "NUL in the signature": lines(second=LINES[1][:50] + b"\0" + LINES[1][51:]),
    "NUL in the trusted comment": lines(third=LINES[2] + b"\0"),
    "10 MiB of junk": b"x" * (10 << 20),
    "10 MiB of line feeds": b"\n" * (10 << 20),
    "a public key": KEY.render(),
    "JSON": b'{"signature": "x"}\n',
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_rel_19_a_file_of_another_shape_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        Signature.parse(data)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 120


@pytest.mark.parametrize(
    "text",
    [b"", b"A", b"AA", b"AAAA", b"AA==\n", b"A A=", b"AA=A", b"=AAA", b"AB-_", b"AAA==", b"\0A=="],
)
def test_base64_is_strict(text: bytes) -> None:
    with pytest.raises(FormatError, match="the word is not 4 base64 characters"):
        decode_base64(text, 1, "word")
    for good, value in ((b"AA==", b"\0"), (b"//==", b"\xff"), (b"AB==", b"\0")):
        assert decode_base64(good, 1, "word") == value


# Public key files.

_WRITTEN = KEY.render()
_BASE64 = _WRITTEN.split(b"\n")[1]


def test_a_public_key_file_may_have_these_shapes() -> None:
    assert PublicKey.parse(_WRITTEN.replace(b"\n", b"\r\n") + b"and more\n" * 100) == KEY
    for comment in (b"", b"\xef\xbb\xbfanything at all", b"x" * 1022):
        for end in (b"", b"\n", b"\0"):
            assert PublicKey.parse(comment + b"\n" + _BASE64 + end) == KEY


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "has a comment line and then the key"),
        (_BASE64, "has a comment line and then the key"),
        (_BASE64 + b"\n", "not 56 base64 characters"),
        (b"x" * 1023 + b"\n" + _BASE64, "has a comment line and then the key"),
        (_BASE64 + b"\ncomment\n", "not 56 base64 characters"),
        (b"comment\n\n" + _BASE64, "not 56 base64 characters"),
        (b"comment\n" + _BASE64[:-1] + b"\n", "not 56 base64 characters"),
        (b"comment\n" + _BASE64 + b"A\n", "not 56 base64 characters"),
        (b"comment\n " + _BASE64[:-1] + b"\n", "not 56 base64 characters"),
        (b"comment\n" + base64.b64encode(PREHASHED + bytes(40)) + b"\n", "unknown algorithm"),
        (b"untrusted comment: minisign encrypted secret key\n" + b"A" * 212, "secret key file"),
    ],
)
def test_rel_25_another_public_key_file_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        PublicKey.parse(data)


# Judging.


def test_a_good_signature_is_good() -> None:
    check(KEY, Signature.parse(FILE), prehash(MESSAGE))
    judge(KEY, signed_legacy(), MESSAGE)


@pytest.mark.parametrize("make", [signed, signed_legacy])
def test_the_key_id_is_looked_at_before_the_signature(make: Callable[..., Signature]) -> None:
    other = replace(make(key=secret_key("other")), signature=bytes(64))
    with pytest.raises(SignatureError) as caught:
        judge(KEY, other, b"")
    assert caught.value.code == "E_KEY"
    assert show_key_id(other.key_id) in caught.value.message
    assert show_key_id(KEY.key_id) in caught.value.message


def test_each_form_of_signature_is_not_the_other() -> None:
    with pytest.raises(SignatureError, match="legacy kind") as caught:
        check(KEY, signed_legacy(), prehash(MESSAGE))
    assert caught.value.code == "E_SIG"
    with pytest.raises(SignatureError, match="does not match the file"):
        judge(KEY, replace(signed(), algorithm=LEGACY), MESSAGE)


@pytest.mark.parametrize("make", [signed, signed_legacy])
def test_rel_21_another_trusted_comment_is_refused(make: Callable[[], Signature]) -> None:
    edited = replace(make(), trusted_comment=b"file:another")
    with pytest.raises(SignatureError, match="trusted comment does not belong") as caught:
        judge(KEY, edited, MESSAGE)
    assert caught.value.code == "E_SIG"
    # Nor is that of another signature of the key.
    other = signed(b"other message", "file:other")
    swapped = replace(edited, global_signature=other.global_signature)
    with pytest.raises(SignatureError, match="trusted comment does not belong"):
        judge(KEY, replace(swapped, trusted_comment=other.trusted_comment), MESSAGE)


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
def test_a_public_key_of_small_order_signs_nothing(point: str, algorithm: bytes) -> None:
    # Under the identity, R = B with S = 1 fits every message where order is not looked at.
    forged = _BASE_POINT + (1).to_bytes(32, "little")
    signature = Signature(algorithm, KEY.key_id, forged, b"", forged)
    weak = PublicKey(KEY.key_id, bytes.fromhex(point))
    with pytest.raises(SignatureError) as caught:
        judge(weak, signature, MESSAGE)
    assert caught.value.code == "E_SIG"


GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


def _second_s(signature: bytes) -> bytes:
    s = int.from_bytes(signature[32:], "little") + GROUP_ORDER
    return signature[:32] + s.to_bytes(32, "little")


def test_a_signature_has_no_second_spelling() -> None:
    good, old = signed(), signed_legacy()
    of_comment = replace(good, global_signature=_second_s(good.global_signature))
    with pytest.raises(SignatureError, match="does not match the file"):
        check(KEY, replace(good, signature=_second_s(good.signature)), prehash(MESSAGE))
    with pytest.raises(SignatureError, match="trusted comment does not belong"):
        check(KEY, of_comment, prehash(MESSAGE))
    with pytest.raises(SignatureError, match="does not match the file"):
        judge(KEY, replace(old, signature=_second_s(old.signature)), MESSAGE)


@examples(100)
@given(st.binary(max_size=300), st.integers(1, 64), st.none() | st.integers(0, 64 * 8 - 1))
def test_a_legacy_signature_is_judged_as_pynacl_does(
    message: bytes, step: int, flipped: int | None
) -> None:
    signature = signed_legacy(message)
    if flipped is not None:
        body = bytearray(signature.signature)
        body[flipped // 8] ^= 1 << flipped % 8
        # The comment is signed anew, so that the verdict is that of the first signature.
        of_comment = secret_key().sign(bytes(body) + signature.trusted_comment)
        signature = replace(signature, signature=bytes(body), global_signature=of_comment)
    pieces = [memoryview(message)[at : at + step] for at in range(0, len(message), step)]
    good = flipped is None
    with contextlib.nullcontext() if good else pytest.raises(CryptoError):
        VerifyKey(KEY.point).verify(message, signature.signature)
    with contextlib.nullcontext() if good else pytest.raises(SignatureError):
        check_legacy(KEY, signature, pieces)


# One bit.


def refused(data: bytes, digest: bytes) -> bool:
    """Whether a release may not have `data` as the signature of a file of that digest."""
    try:
        signature = Signature.parse(data)
        check(KEY, signature, digest)
    except (FormatError, SignatureError):
        return True
    return bool(signature.oddities)


def test_each_single_bit_of_a_signature_file_matters_but_in_the_untrusted_comment() -> None:
    digest = prehash(MESSAGE)
    unsigned = range(len(b"untrusted comment: "), FILE.index(b"\n"))
    assert not refused(FILE, digest)
    for at, bit in itertools.product(range(len(FILE) - 1), range(8)):
        changed = bytearray(FILE)
        changed[at] ^= 1 << bit
        assert refused(bytes(changed), digest) or at in unsigned


def test_each_single_bit_of_the_signed_file_and_its_end_and_of_the_public_key_matter() -> None:
    message, raw = bytearray(b"\x5a" * 64), bytearray(KEY.key_id + KEY.point)
    signature = signed(bytes(message))
    for data in (message, raw):
        for at, bit in itertools.product(range(len(data)), range(8)):
            data[at] ^= 1 << bit
            with pytest.raises(SignatureError):
                judge(PublicKey(bytes(raw[:8]), bytes(raw[8:])), signature, bytes(message))
            data[at] ^= 1 << bit
    good = bytes(message)
    for other in (good[:-1], good + b"\0", good[1:], b"", good * 2):
        with pytest.raises(SignatureError, match="does not match the file"):
            judge(KEY, signature, other)
    judge(KEY, signature, good)
