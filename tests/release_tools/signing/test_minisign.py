"""minisign's file formats, without the program."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_tools.signing.minisign import (
    LEGACY,
    PREHASHED,
    FormatError,
    PublicKey,
    Signature,
    decode_base64,
    show_key_id,
)
from tests.support.properties import examples
from tests.support.signatures import secret_key, signed

KEY = secret_key().public_key
FILE = signed().render()
LINES = FILE.split(b"\n")[:4]


def lines(**changed: bytes) -> bytes:
    """The signature file with these lines replaced; the names are first to fourth."""
    names = ("first", "second", "third", "fourth")
    rows = zip(names, LINES, strict=True)
    return b"\n".join(changed.get(name, line) for name, line in rows) + b"\n"


# Parsing what was rendered.

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
def test_rel_19_what_minisign_tolerates_is_listed(data: bytes, oddity: str) -> None:
    assert any(found.startswith(oddity) for found in Signature.parse(data).oddities)


# More are compared with the program, in `tests/interop/test_minisign_program.py`.
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
def test_rel_19_a_malformed_file_is_refused_with_a_sentence(data: bytes) -> None:
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


def test_these_forms_of_a_public_key_file_are_accepted() -> None:
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
def test_rel_25_other_forms_of_a_public_key_file_are_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        PublicKey.parse(data)
