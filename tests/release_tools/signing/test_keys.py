"""Keys from files and from the environment."""

from __future__ import annotations

import contextlib
import os
import stat
import traceback
from pathlib import Path
from typing import NoReturn

import pytest

from platform_common.errors import AccessError, PlatformError
from release_tools.signing.keys import (
    KeyExistsError,
    KeyFileError,
    generate,
    load_public_key,
    take_secret_key,
    writable_by_others,
)
from release_tools.signing.minisign import SignatureError, prehash
from release_tools.signing.secret_key import parse_secret_key, render_secret_key
from tests.support.own_process import umask
from tests.support.signatures import MESSAGE, secret_key

OLD, NEW, STRANGER = (secret_key(name) for name in ("old", "new", "stranger"))
DIGEST = prehash(MESSAGE)
KEY_TEXT = render_secret_key(secret_key(), "", salt=bytes(32)).decode()
KEY_LINE = KEY_TEXT.split("\n")[1]


def not_asked() -> NoReturn:
    raise AssertionError("the password was asked for")


# Public keys.


def test_a_public_key_is_a_file_or_its_line(tmp_path: Path) -> None:
    key = secret_key().public_key
    (tmp_path / "k.pub").write_bytes(key.render())
    assert load_public_key(str(tmp_path / "k.pub")) == key
    assert load_public_key(key.render().decode().split("\n")[1]) == key


_PUBLIC = secret_key().public_key.render().decode()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (KEY_TEXT, "this is a secret key file, but a public key is needed"),
        ("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n", "not 56 base64 characters"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA me\n", "not 56 base64 characters"),
    ],
    ids=["secret", "PEM", "SSH"],
)
def test_rel_25_a_text_that_is_not_a_public_key_is_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "k.pub"
    path.write_text(text)
    with pytest.raises(KeyFileError, match=sentence) as caught:
        load_public_key(str(path))
    assert str(path) in caught.value.message
    assert "keygen" in caught.value.hint
    assert KEY_LINE[:20] not in caught.value.message


def test_rel_25_a_public_key_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_bytes(b"x" * ((64 << 10) + 1))
    for name in ("missing", "folder", "fifo", "large"):
        with pytest.raises(AccessError, match=name):
            load_public_key(str(tmp_path / name))
    # A damaged line is taken for a path.
    with pytest.raises(AccessError, match="No such file"):
        load_public_key("RW" + "A" * 53)


@pytest.mark.parametrize(
    ("mode", "expected"), [(0o644, False), (0o600, False), (0o664, True), (0o646, True)]
)
def test_rel_25_a_key_file_that_others_can_change_is_detected(
    tmp_path: Path, mode: int, *, expected: bool
) -> None:
    path = tmp_path / "k.pub"
    path.touch()
    path.chmod(mode)
    assert writable_by_others(str(path)) is expected
    assert not writable_by_others(_PUBLIC.split("\n")[1])


# The signing key.


@pytest.mark.parametrize("value", [KEY_TEXT, KEY_LINE, KEY_LINE + "\n", f" {KEY_LINE} ", "path"])
def test_the_signing_key_is_a_text_a_line_or_a_path(tmp_path: Path, value: str) -> None:
    if value == "path":
        (tmp_path / "k").write_text(KEY_TEXT)
        value = str(tmp_path / "k")
    assert take_secret_key({"SIGNING_SECRET_KEY": value}, not_asked) == secret_key()


@pytest.mark.parametrize(
    "value", [KEY_TEXT, "", "damaged " + KEY_LINE, "/nowhere", None], ids=ascii
)
def test_pub_01_key_and_password_are_removed_from_the_environment(value: str | None) -> None:
    environment = {"SIGNING_SECRET_KEY": value, "SIGNING_SECRET_KEY_PASSWORD": "x", "PATH": "p"}
    given = {name: text for name, text in environment.items() if text is not None}
    with contextlib.nullcontext() if value in (KEY_TEXT, None) else pytest.raises(PlatformError):
        # A password without a key is no signing key.
        assert take_secret_key(given, not_asked) == (secret_key() if value else None)
    assert given == {"PATH": "p"}


DAMAGED = KEY_LINE[:100] + "!" + KEY_LINE[101:]


@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        (" \n\t", KeyFileError, "is set but empty"),
        *(
            (value, AccessError, "neither a minisign secret key nor a file")
            for value in ("/nowhere/key", DAMAGED, KEY_LINE[:-5], KEY_LINE * 30, "a\0b", "\udcff")
        ),
        *(
            (value, KeyFileError, "is not a minisign key")
            for value in ("comment\n" + KEY_LINE, "x: \udcff\n" + DAMAGED, KEY_TEXT[:-8], _PUBLIC)
        ),
        (KEY_LINE[:75] + "AAAA" + KEY_LINE[79:], SignatureError, "the key file is damaged"),
    ],
    ids=lambda value: ascii(value)[:24] if isinstance(value, str) else "",
)
def test_pub_02_an_invalid_signing_key_is_not_shown_in_the_error(
    value: str, error: type[PlatformError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence) as caught:
        take_secret_key({"SIGNING_SECRET_KEY": value}, not_asked)
    told = "".join(traceback.format_exception(caught.value))
    for part in (value, KEY_LINE[:40], KEY_LINE[120:160]):
        assert not part.strip() or part not in told


def test_pub_02_a_password_is_asked_for_once_and_only_when_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("release_tools.signing.secret_key.DEFAULT_OPSLIMIT", 1 << 20)
    monkeypatch.setattr("release_tools.signing.secret_key.DEFAULT_MEMLIMIT", 1 << 25)
    locked = render_secret_key(secret_key(), "x", salt=bytes(32)).decode()
    asked = []

    def ask() -> str:
        asked.append(1)
        return "x"

    assert take_secret_key({"SIGNING_SECRET_KEY": locked}, ask) == secret_key()
    assert asked == [1]
    given = {"SIGNING_SECRET_KEY": locked, "SIGNING_SECRET_KEY_PASSWORD": "x"}
    assert take_secret_key(given, not_asked) == secret_key()
    empty = {"SIGNING_SECRET_KEY": locked, "SIGNING_SECRET_KEY_PASSWORD": ""}
    with pytest.raises(SignatureError, match="password of the secret key is wrong"):
        take_secret_key(empty, not_asked)


# New keys.


def test_a_new_key_pair_matches_and_only_the_owner_can_read_the_secret_key(tmp_path: Path) -> None:
    secret, public = tmp_path / "new" / "r.key", tmp_path / "new" / "r.pub"
    with umask(0):
        key = generate(secret, public, "")
    assert parse_secret_key(secret.read_bytes(), not_asked).public_key == key
    assert load_public_key(str(public)) == key
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(public.stat().st_mode) == 0o644
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    other = generate(tmp_path / "other.key", tmp_path / "other.pub", "")
    assert (other.key_id == key.key_id, other.point == key.point) == (False, False)


@pytest.mark.parametrize("name", ["r.key", "r.pub"])
@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_an_existing_key_file_is_never_overwritten(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    if kind == "file":
        path.write_text("precious")
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyExistsError, match=f"{name} already exists"):
        generate(tmp_path / "r.key", tmp_path / "r.pub", "")
    assert [left.name for left in tmp_path.iterdir()] == [name]


def test_the_two_keys_need_two_files(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="two files"):
        generate(tmp_path / "k", tmp_path / "x" / ".." / "k", "")
    assert list(tmp_path.iterdir()) == []


def test_no_secret_key_is_left_without_its_public_key(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"/proc/release\.pub: "):
        generate(tmp_path / "k", Path("/proc/release.pub"), "")
    assert list(tmp_path.iterdir()) == []
