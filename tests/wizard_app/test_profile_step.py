"""The step that chooses what the device runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from flask.testing import FlaskClient

from tests.support.dashboard_states import MARKUP
from tests.support.devices import Device

FOLDER = "/etc/platform/profiles"


def install(device: Device, profile_id: str, name: str = "Mine", need_mb: int = 0) -> Path:
    """Install a profile with two channels."""
    return device.put(
        f"{FOLDER}/{profile_id}.toml",
        f"[profile]\ndisplay_name = {json.dumps(name)}\nmin_ram_mb = {need_mb}\n"
        '[channels]\nsupported = ["telegram", "irc"]\n',
    )


def limit(device: Device, ram_mb: int) -> None:
    """Have the device that much memory."""
    capabilities: dict[str, object] = {}
    record = {"target": "test", "tier": "low", "ram_mb": ram_mb, "ram_class": "low"}
    more = {"storage_class": "sd", "capabilities": capabilities, "limitations": []}
    device.put("/etc/platform/limits.json", json.dumps(record | more))


def chosen(page: str) -> list[str]:
    """The profiles whose radio is set."""
    return re.findall(r'name="profile" type="radio" value="([^"]*)" checked', page)


def test_an_installed_profile_is_taken_and_no_other(client: FlaskClient, state_file: Path) -> None:
    for profile in (
        *("", "  ", "nobody", "OpenClaw", "../openclaw", "openclaw.toml", "openclaw\0", MARKUP),
        "x" * 99,
    ):
        answer = client.post("/wizard/profile", data={"profile": profile})
        assert answer.status_code == 200
        assert '<div class="error">' in answer.text
        assert "Select a profile" in answer.text
        assert MARKUP not in answer.text
    assert not state_file.exists()
    for profile in ("openclaw", "hermes", "khoj"):
        answer = client.post("/wizard/profile", data={"profile": profile})
        assert (answer.status_code, answer.location) == (302, "/wizard/provider")
        assert json.loads(state_file.read_bytes())["answers"] == {"profile": profile}


def test_a_profile_is_preselected_only_where_there_is_no_other(
    client: FlaskClient, device: Device
) -> None:
    install(device, "mine")
    assert chosen(client.get("/wizard/profile").text) == ["mine"]
    install(device, "yours")
    assert chosen(client.get("/wizard/profile").text) == []


def test_what_a_profile_needs_is_held_against_what_the_device_has(
    client: FlaskClient, device: Device
) -> None:
    for need_mb, ram_mb, said in (
        (4096, 2048, "Needs 4 GB; this device has 2 GB"),
        (1536, 512, "Needs 1.5 GB; this device has 512 MB"),
        (4096, 4096, "Needs 4 GB of memory"),
        (512, 8192, "Needs 512 MB of memory"),
    ):
        install(device, "mine", need_mb=need_mb)
        limit(device, ram_mb)
        assert said in client.get("/wizard/profile").text
        assert client.post("/wizard/profile", data={"profile": "mine"}).status_code == 302
    # One that does not know its memory warns of nothing.
    device.put("/etc/platform/limits.json", "{")
    page = client.get("/wizard/profile").text
    assert "Needs 512 MB of memory" in page
    assert "this device has" not in page


def test_without_any_profile_the_page_says_what_to_do(client: FlaskClient, device: Device) -> None:
    device.path(f"{FOLDER}/none").parent.mkdir(exist_ok=True)
    page = client.get("/wizard/profile").text
    assert "No profile is installed on this device" in page
    assert "<button>Continue</button>" not in page
    answer = client.post("/wizard/profile", data={"profile": "openclaw"})
    assert answer.status_code == 200
    assert "No profile is installed, so there is none to select" in answer.text


def test_fs_09_a_profile_that_goes_away_is_refused_and_missed(
    client: FlaskClient, device: Device, state_file: Path
) -> None:
    file = install(device, "mine")
    install(device, "yours")
    assert 'value="mine"' in client.get("/wizard/profile").text
    file.unlink()
    answer = client.post("/wizard/profile", data={"profile": "mine"})
    assert answer.status_code == 200
    assert "Select a profile that is installed" in answer.text
    assert not state_file.exists()
    install(device, "mine")
    client.post("/wizard/profile", data={"profile": "mine"})
    file.unlink()
    said = "The profile mine is not installed any more: select another"
    assert said in client.get("/wizard/profile").text
    assert said in client.get("/wizard/review").text


def test_http_14_the_name_of_a_profile_is_text_wherever_it_is_shown(
    client: FlaskClient, device: Device
) -> None:
    install(device, "mine", MARKUP)
    client.post("/wizard/profile", data={"profile": "mine"})
    for address in ("profile", "channels", "review"):
        page = client.get(f"/wizard/{address}").text
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>alert" not in page
        assert "<img" not in page
