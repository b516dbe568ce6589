"""Secret keys: their files and passwords, and that they are never shown."""

from __future__ import annotations

import base64
import pickle
import resource
import subprocess
import sys
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_tools.signing import secret_key as module
from release_tools.signing.minisign import FormatError, SignatureError, prehash
from release_tools.signing.secret_key import SecretKey, parse_secret_key, render_secret_key, sign
from tests.support.properties import examples
from tests.support.signatures import MESSAGE, secret_key

SALT = bytes(range(32))
PLAIN = render_secret_key(secret_key(), "", salt=SALT)


def not_asked() -> NoReturn:
    raise AssertionError("the password was asked for")


def raw_key(data: bytes = PLAIN) -> bytearray:
    return bytearray(base64.b64decode(data.split(b"\n")[1]))


def file_of(raw: bytes | bytearray) -> bytes:
    return b"untrusted comment: x\n" + base64.b64encode(raw) + b"\n"


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encrypted keys that cost 32 MiB instead of 1 GiB; minisign reads these as well."""
    monkeypatch.setattr(module, "DEFAULT_OPSLIMIT", 1 << 20)
    monkeypatch.setattr(module, "DEFAULT_MEMLIMIT", 1 << 25)


# Reading back.


@examples(100)
@given(st.binary(min_size=8, max_size=8), st.binary(min_size=32, max_size=32))
def test_a_key_without_a_password_is_read_back(key_id: bytes, seed: bytes) -> None:
    key = SecretKey(key_id, seed)
    data = render_secret_key(key, "", salt=SALT)
    assert parse_secret_key(data, not_asked) == key
    assert parse_secret_key(data.split(b"\n")[1], not_asked) == key


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize(
    "password", ["x", "correct horse", "Zürich 漢字", "\udcff\udc80", "p" * 1000]
)
def test_a_key_with_a_password_is_read_back(password: str) -> None:
    data = render_secret_key(secret_key(), password, salt=SALT)
    assert parse_secret_key(data, lambda: password) == secret_key()
    assert secret_key().seed not in raw_key(data)


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("password", ["", "X", "x ", "y"])
def test_a_wrong_password_is_refused(password: str) -> None:
    data = render_secret_key(secret_key(), "x", salt=SALT)
    with pytest.raises(SignatureError, match="password of the secret key is wrong") as caught:
        parse_secret_key(data, lambda: password)
    assert caught.value.code == "E_KEY"


@pytest.mark.usefixtures("cheap")
def test_another_salt_changes_all_encrypted_bytes() -> None:
    one, other = (
        raw_key(render_secret_key(secret_key(), "x", salt=bytes([n]) * 32)) for n in (1, 2)
    )
    assert one[54:] != other[54:]
    assert one[6:38] == b"\1" * 32


def test_these_forms_of_a_key_file_are_accepted() -> None:
    for data in (
        *(PLAIN.replace(b"\n", b"\r\n"), PLAIN[:-1], PLAIN + b"\n\n", b"\n" + PLAIN),
        *(PLAIN.split(b"\n")[1], b"untrusted comment:\n" + PLAIN.split(b"\n")[1]),
    ):
        assert parse_secret_key(data, not_asked) == secret_key(), data


# Refusing.

_LINE = PLAIN.split(b"\n")[1]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "not 212 base64 characters"),
        (b"\n", "not 212 base64 characters"),
        (b"x\n" + _LINE, "a comment line and then the key"),
        (PLAIN + PLAIN, "a comment line and then the key"),
        (PLAIN + b"x\n", "a comment line and then the key"),
        (_LINE[:-1], "not 212 base64 characters"),
        (_LINE + b"A", "not 212 base64 characters"),
        (b" " + _LINE, "not 212 base64 characters"),
        (secret_key().public_key.render(), "not 212 base64 characters"),
        (file_of(b"ED" + raw_key()[2:]), "unknown algorithm"),
        (file_of(raw_key()[:2] + b"Xx" + raw_key()[4:]), "unknown algorithm"),
        (file_of(raw_key()[:4] + b"B3" + raw_key()[6:]), "unknown algorithm"),
        (b"\0" * 212, "not 212 base64 characters"),
        (b"\xff" * 10_000, "not 212 base64 characters"),
    ],
)
def test_a_file_that_is_not_a_key_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        parse_secret_key(data, not_asked)


@pytest.mark.parametrize("at", [54, 61, 62, 93, 94, 125, 126, 157])
def test_a_damaged_key_is_refused_by_its_checksum(at: int) -> None:
    raw = raw_key()
    raw[at] ^= 1
    with pytest.raises(SignatureError, match="checksum is wrong") as caught:
        parse_secret_key(file_of(raw), not_asked)
    assert caught.value.code == "E_KEY"


def test_without_a_checksum_the_public_half_must_match_the_key() -> None:
    raw = raw_key()
    raw[126:] = bytes(32)
    assert parse_secret_key(file_of(raw), not_asked) == secret_key()
    raw[94:126] = secret_key("other").public_key.point
    raw[126:] = bytes(32)
    with pytest.raises(SignatureError, match="checksum is wrong"):
        parse_secret_key(file_of(raw), not_asked)


TOO_MUCH = "more work or memory than minisign"
CONTRADICTION = "contradict each other"


@pytest.mark.parametrize(
    ("operations", "memory", "sentence"),
    [
        *(
            (33_554_433, 1 << 30, TOO_MUCH),
            (33_554_432, (1 << 30) + 1, TOO_MUCH),
            (-1, -1, TOO_MUCH),
        ),
        *((0, 0, CONTRADICTION), (1, 1, CONTRADICTION), (32_768, 0, CONTRADICTION)),
    ],
)
def test_a_key_with_other_limits_than_those_of_minisign_is_refused(
    operations: int, memory: int, sentence: str
) -> None:
    raw = raw_key()
    raw[2:4] = b"Sc"
    raw[38:54] = b"".join((n % 2**64).to_bytes(8, "little") for n in (operations, memory))
    with pytest.raises(FormatError, match=sentence):
        parse_secret_key(file_of(raw), lambda: "x")


def test_too_little_memory_for_a_password_is_reported() -> None:
    program = (
        "import base64, resource\n"
        "import nacl.pwhash, nacl.signing\n"
        "from platform_common.errors import PlatformError\n"
        "from release_tools.signing.secret_key import SecretKey, render_secret_key\n"
        "resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))\n"
        "try:\n"
        "    render_secret_key(SecretKey(bytes(8), bytes(32)), 'x', salt=bytes(32))\n"
        "except PlatformError as error:\n"
        "    print(error.message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "the password check needs 1024 MiB of free memory\n", done.stderr
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != 600 << 20


# Signing.


def test_the_longest_comment_is_as_long_as_in_minisign() -> None:
    sign(secret_key(), prehash(MESSAGE), "x" * 4077)
    with pytest.raises(FormatError, match="too long"):
        sign(secret_key(), prehash(MESSAGE), "ä" * 2039)


@pytest.mark.parametrize(
    "comment", ["a\nb", "a\rb", "a\0b", "\x1b[2J", "\u202e", "\u2028", "\udcff"], ids=ascii
)
def test_a_comment_with_a_control_character_is_not_signed(comment: str) -> None:
    with pytest.raises(FormatError, match="control character"):
        sign(secret_key(), prehash(MESSAGE), comment)


# Secrets are never shown.


@pytest.mark.usefixtures("cheap")
def test_leak_08_no_error_shows_the_key_or_its_password() -> None:
    data = render_secret_key(secret_key(), "hunter2", salt=SALT)
    damaged = [data[:-3], data + b"x", data.replace(b"RW", b"RX", 1), data[:60] + b"!" + data[61:]]
    for text in damaged:
        with pytest.raises((FormatError, SignatureError)) as caught:
            parse_secret_key(text, lambda: "hunter3")
        for secret in ("hunter", data.split(b"\n")[1][:20].decode()):
            assert secret not in f"{caught.value} {caught.value.args} {caught.value.hint}"
        assert pickle.dumps(caught.value.args).find(data[80:100]) == -1
