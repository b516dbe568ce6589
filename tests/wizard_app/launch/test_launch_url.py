"""Launch URLs, their QR codes, and the file that says where a wizard is served."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from platform_common.errors import PlatformError
from wizard_app.launch import launch_url, qr_code
from wizard_app.setup import serving_file
from wizard_app.setup.serving_file import Serving, ServingFile, bases

TOKEN = "0123456789abcdef" * 4


def test_a_server_on_one_address_is_reached_at_that_address() -> None:
    for bind, expected in {
        "127.0.0.1:8088": ("http://127.0.0.1:8088",),
        "localhost:8088": ("http://localhost:8088",),
        "[::1]:8088": ("http://[::1]:8088",),
        "192.0.2.9:80": ("http://192.0.2.9:80",),
        "unix:/run/platform/wizard.sock": (),
    }.items():
        assert bases(bind, "http") == expected


def test_a_server_on_every_address_is_reached_by_address_and_by_name() -> None:
    *addresses, name = bases("0.0.0.0:8088", "https")
    assert name == f"https://{socket.gethostname().partition('.')[0].lower()}.local:8088"
    for base in addresses:
        host = base.removeprefix("https://").removesuffix(":8088")
        assert not ipaddress.IPv4Address(host).is_unspecified


def test_without_an_address_the_host_name_and_loopback_remain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving_file, "own_addresses", lambda families: [])
    monkeypatch.setattr(serving_file, "interface_addresses", list)
    name, here = bases("[::]:8088", "http")
    assert name.endswith(".local:8088")
    assert here == "http://127.0.0.1:8088"
    monkeypatch.setattr(serving_file, "own_addresses", lambda families: ["2001:db8::7"])
    assert bases("[::]:8088", "http")[0] == "http://[2001:db8::7]:8088"


def test_the_addresses_of_the_interfaces_can_be_bound() -> None:
    for address in serving_file.interface_addresses():
        with socket.socket() as probe:
            probe.bind((address, 0))


def test_the_qr_codes_have_a_quiet_zone_and_are_black_on_white() -> None:
    url = f"https://192.0.2.2:8088/?token={TOKEN}"
    lines = qr_code.on_terminal(url, colour=False).splitlines()
    assert {len(line) for line in lines} == {len(lines[0])}
    assert len(lines[0]) <= 80
    assert set(lines[0]) == set(lines[1]) == {"█"}
    assert qr_code.on_terminal(url).startswith("\x1b[97;40m")
    image = qr_code.as_image(url)
    assert image.startswith("data:image/svg+xml")
    assert "fff" in image
    assert "style" not in image


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return tmp_path / "run/wizard.token"


def test_other_programs_can_find_a_running_wizard(token_file: Path) -> None:
    here = Serving(os.getpid(), ("http://127.0.0.1:8088",), "AB")
    with launch_url.announced(token_file, here):
        assert launch_url.served(token_file) == here
        assert ServingFile(token_file).path.stat().st_mode & 0o7777 == 0o600
        token_file.write_text(TOKEN)
    assert not token_file.exists()
    assert not ServingFile(token_file).path.exists()


def test_tok_09_the_token_is_removed_however_the_program_ends(token_file: Path) -> None:
    def end() -> None:
        with launch_url.announced(token_file, Serving(os.getpid())):
            token_file.write_text(TOKEN)
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        end()
    assert not token_file.exists()


def test_a_killed_wizard_counts_as_not_running(token_file: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    ServingFile(token_file).write(Serving(ended.pid))
    with pytest.raises(PlatformError, match="No wizard is running"):
        launch_url.served(token_file)


def test_a_damaged_file_or_one_too_large_for_a_screen_is_reported(token_file: Path) -> None:
    token_file.parent.mkdir()
    for members in (
        {"bases": ["https://" + "a" * 400]},
        {"bases": [f"https://a{number}" for number in range(300)]},
        {"fingerprint": "A" * 400},
        {"bind": " ".join(f"0.0.0.0:{port}" for port in range(1, 1000))},
    ):
        ServingFile(token_file).path.write_text(json.dumps({"pid": os.getpid(), **members}))
        with pytest.raises(PlatformError, match="address"):
            launch_url.served(token_file)
    for content in ("", "[]", '{"pid": "x"}', '{"pid": 1e9}', "\0", '{"pid": -1}'):
        ServingFile(token_file).path.write_text(content)
        with pytest.raises(PlatformError):
            launch_url.served(token_file)
