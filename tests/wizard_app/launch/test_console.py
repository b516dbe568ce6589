"""What the console shows on all kinds of screens, and which running wizard root trusts."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import struct
import termios
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import segno

from platform_common.errors import AccessError, PlatformError
from wizard_app.access.token_file import TokenFile
from wizard_app.launch import console, launch_url
from wizard_app.launch.console_text import Screen, text
from wizard_app.setup import serving_file
from wizard_app.setup.serving_file import Serving, ServingFile

TOKEN = "0123456789abcdef" * 4
FINGERPRINT = ":".join(["AB"] * 32)
SERVING = Serving(
    1,
    ("https://192.168.100.123:8088", "https://[fd00::7]:8088", "https://kitchen-agent.local:8088"),
    FINGERPRINT,
)
URL = f"https://192.168.100.123:8088/?token={TOKEN}"
NOBODY = 65_534


def plain(shown: str) -> list[str]:
    """The lines without colours."""
    return shown.replace("\x1b[97;40m", "").replace("\x1b[0m", "").splitlines()


def rows(lines: list[str], columns: int) -> int:
    """How many rows of a screen the lines need."""
    return sum(max(1, -(-len(line) // columns)) for line in lines)


def modules(shown: str, *, halves: bool) -> list[list[bool]]:
    """The modules of the shown QR code; True is dark."""
    found: list[list[bool]] = []
    for line in shown.splitlines():
        if not line.startswith("\x1b[97;40m"):
            continue
        code = line.removeprefix("\x1b[97;40m").partition("\x1b")[0]
        if halves:
            found += [[sign in " ▄" for sign in code], [sign in " ▀" for sign in code]]
        else:
            assert set(code) <= {"█", " "}
            found.append([sign == " " for sign in code[::2]])
            assert found[-1] == [sign == " " for sign in code[1::2]]
    return found


def expected(url: str) -> list[list[bool]]:
    """The QR code of `url`, with a border of two light modules."""
    matrix = segno.make(url, error="l", micro=False).matrix_iter(border=2)
    return [[bool(module) for module in row] for row in matrix]


def test_link_qr_code_and_fingerprint_fit_the_smallest_screen() -> None:
    shown = text(SERVING, TOKEN, Screen(24, 80))
    lines = plain(shown)
    assert lines[0] == URL
    assert max(map(len, lines[1:])) < 80
    # With one more line for the login prompt of agetty.
    assert rows(lines, 80) + 1 <= 24
    code = expected(URL)
    assert modules(shown, halves=True)[: len(code)] == code
    beside = " ".join(line[len(code[0]) + 2 :] for line in lines[1:])
    assert FINGERPRINT in beside.replace(": ", ":")
    assert "kitchen-agent.local:8088" in beside
    assert "fd00" not in beside


def test_a_font_without_half_blocks_gets_a_qr_code_of_full_blocks_if_there_is_room() -> None:
    shown = text(SERVING, TOKEN, Screen(48, 128, halves=False))
    code = expected(URL)
    assert modules(shown, halves=False) == code
    assert max(map(len, plain(shown))) < 128


def test_without_room_for_a_qr_code_only_the_link_is_shown() -> None:
    for screen in (Screen(25, 80, halves=False), Screen(20, 80), Screen(50, 60)):
        lines = plain(text(SERVING, TOKEN, screen))
        assert lines[0] == URL
        assert not set("".join(lines)) & set("█▀▄")
        assert rows(lines, screen.columns) < 20
        assert "too small for a QR code" in " ".join(lines)
    # A long address has a QR code, too.
    serving = Serving(1, ("https://[fd00:1234:5678:9abc:def0:1234:5678:9abc]:8088",), FINGERPRINT)
    lines = plain(text(serving, TOKEN, Screen(30, 90)))
    assert "█" in lines[1]
    assert max(map(len, lines[1:])) < 90


def test_without_a_network_the_text_says_so_and_shows_the_host_name() -> None:
    serving = Serving(1, ("https://kitchen.local:8088", "https://127.0.0.1:8088"), FINGERPRINT)
    shown = " ".join(plain(text(serving, TOKEN, Screen(), connected=False)))
    assert shown.startswith(f"https://kitchen.local:8088/?token={TOKEN} ")
    assert "no network address" in shown
    assert "127.0.0.1" not in shown
    assert "█" not in shown


def test_leak_02_a_file_of_another_user_cannot_change_a_screen(tmp_path: Path) -> None:
    file = tmp_path / "wizard.token"
    for said in (
        *({"bases": ["https://x\x1b[2J"]}, {"bases": [r"https://\d"]}, {"bases": ["https://a\nb"]}),
        *({"fingerprint": "AB CD"}, {"fingerprint": "\u202e"}),
    ):
        ServingFile(file).path.write_text(json.dumps({"pid": os.getpid(), **said}))
        with pytest.raises(PlatformError, match="invalid characters"):
            launch_url.served(file)


def test_the_addresses_are_the_current_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Serving(1, ("https://kitchen.local:8088",), FINGERPRINT, bind="[::]:8088")
    monkeypatch.setattr(serving_file, "own_addresses", lambda families: ["192.0.2.7"])
    assert late.now().bases[0] == "https://192.0.2.7:8088"
    behind = Serving(1, ("https://setup.example.org",), bind="127.0.0.1:8088", behind_proxy=True)
    assert behind.now() == behind


@pytest.mark.parametrize("characters", [{0x2588}, {0x2580, 0x2584, 0x2588}])
def test_the_characters_of_the_font_are_queried(
    characters: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(descriptor: int, request: int, asked: bytes) -> bytes:
        assert request == 0x4B66
        most, place = struct.unpack("H0PP", asked)
        pairs = b"".join(struct.pack("HH", one, 0) for one in sorted(characters))
        assert len(characters) <= most
        ctypes.memmove(place, pairs, len(pairs))
        return struct.pack("H0PP", len(characters), place)

    monkeypatch.setattr(fcntl, "ioctl", answer)
    monkeypatch.setattr(termios, "tcgetwinsize", lambda descriptor: (25, 80))
    assert console.screen("/dev/null") == Screen(25, 80, len(characters) == 3)


def test_without_a_screen_the_text_is_for_a_serial_line(tmp_path: Path) -> None:
    assert console.screen(str(tmp_path / "none")) == Screen(24, 80, halves=True)
    assert console.screen("/dev/null") == Screen(24, 80, halves=True)


class Owners:
    """Gives files to other users; if the tests do not run as root, it patches `stat` instead."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch, self._really = patch, os.geteuid() == 0
        self._given: dict[int, int] = {}

    def give(self, path: Path, user: int, group: int) -> None:
        if self._really:
            os.chown(path, user, group)
        elif not self._given:
            for name in ("stat", "fstat"):
                self._patch.setattr(os, name, self._patched(getattr(os, name)))
            self._patch.setattr(os, "geteuid", lambda: 0)
        self._given[path.lstat().st_ino] = user

    def _patched(self, stat: Callable[..., os.stat_result]) -> Callable[..., Any]:
        def told(*place: Any, **options: Any) -> Any:
            found = stat(*place, **options)
            members = {name: getattr(found, name) for name in dir(found) if name[:3] == "st_"}
            owner = self._given.get(found.st_ino, found.st_uid)
            return SimpleNamespace(**members | {"st_uid": owner})

        return told


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> Owners:
    return Owners(monkeypatch)


@pytest.fixture
def token_file(tmp_path: Path, owners: Owners) -> Path:
    """A token and serving file of another user, in a folder to which others can write."""
    file = tmp_path / "run/wizard.token"
    TokenFile(file).write(TOKEN)
    ServingFile(file).write(Serving(os.getpid()))
    owners.give(file.parent, 0, NOBODY)
    file.parent.chmod(0o1770)
    for path in (file, ServingFile(file).path):
        owners.give(path, NOBODY, NOBODY)
    return file


def test_tok_09_root_trusts_the_owner_of_the_tokens_folder(
    token_file: Path, owners: Owners
) -> None:
    assert launch_url.waiting_token(token_file) == TOKEN
    with pytest.raises(AccessError, match="another user"):
        TokenFile(token_file).read()
    # Only for the owner's own file, and not in a folder where everyone can write.
    for user, mode in ((NOBODY - 1, 0o1770), (NOBODY, 0o1777)):
        owners.give(token_file, user, user)
        token_file.parent.chmod(mode)
        with pytest.raises(AccessError, match="another user"):
            launch_url.waiting_token(token_file)


def test_tok_09_root_does_not_follow_a_link_in_place_of_the_token(
    token_file: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "shadow"
    victim.write_text(TOKEN)
    for plant, kind in ((token_file.symlink_to, "symbolic link"), (token_file.hardlink_to, "hard")):
        token_file.unlink()
        plant(victim)
        with pytest.raises(AccessError, match=kind):
            launch_url.waiting_token(token_file)
