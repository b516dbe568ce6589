"""The step that chooses what the device runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.support.dashboard_states import MARKUP
from tests.support.devices import Device
from tests.wizard_app.conftest import MakeWizard

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


@pytest.mark.parametrize("profile", ["openclaw", "hermes", "khoj"])
def test_an_installed_profile_is_taken(client: FlaskClient, state_file: Path, profile: str) -> None:
    answer = client.post("/wizard/profile", data={"profile": profile})
    assert (answer.status_code, answer.location) == (302, "/wizard/provider")
    assert json.loads(state_file.read_bytes())["answers"] == {"profile": profile}


@pytest.mark.parametrize(
    "profile",
    [
        "",
        "  ",
        "nobody",
        "OpenClaw",
        "../openclaw",
        "openclaw.toml",
        "openclaw\0",
        MARKUP,
        "x" * 99,
    ],
)
def test_what_is_not_installed_is_refused(
    client: FlaskClient, state_file: Path, profile: str
) -> None:
    answer = client.post("/wizard/profile", data={"profile": profile})
    assert answer.status_code == 200
    assert '<div class="error">' in answer.text
    assert "Select a profile" in answer.text
    assert MARKUP not in answer.text
    assert not state_file.exists()


def test_a_profile_is_preselected_only_where_there_is_no_other(
    client: FlaskClient, device: Device
) -> None:
    install(device, "mine")
    assert chosen(client.get("/wizard/profile").text) == ["mine"]
    install(device, "yours")
    assert chosen(client.get("/wizard/profile").text) == []


@pytest.mark.parametrize(
    ("need_mb", "ram_mb", "said"),
    [
        (4096, 2048, "Needs 4 GB; this device has 2 GB"),
        (1536, 512, "Needs 1.5 GB; this device has 512 MB"),
        (4096, 4096, "Needs 4 GB of memory"),
        (512, 8192, "Needs 512 MB of memory"),
    ],
)
def test_what_a_profile_needs_is_held_against_what_the_device_has(
    client: FlaskClient, device: Device, need_mb: int, ram_mb: int, said: str
) -> None:
    install(device, "mine", need_mb=need_mb)
    limit(device, ram_mb)
    assert said in client.get("/wizard/profile").text
    assert client.post("/wizard/profile", data={"profile": "mine"}).status_code == 302


def test_a_device_that_does_not_know_its_memory_warns_of_nothing(
    client: FlaskClient, device: Device
) -> None:
    install(device, "mine", need_mb=4096)
    device.put("/etc/platform/limits.json", "{")
    page = client.get("/wizard/profile").text
    assert "Needs 4 GB of memory" in page
    assert "this device has" not in page


def test_without_any_profile_the_page_says_what_to_do(client: FlaskClient, device: Device) -> None:
    device.path(f"{FOLDER}/none").parent.mkdir(exist_ok=True)
    page = client.get("/wizard/profile").text
    assert "No profile is installed on this device" in page
    assert "<button>Continue</button>" not in page
    answer = client.post("/wizard/profile", data={"profile": "openclaw"})
    assert answer.status_code == 200
    assert "No profile is installed, so there is none to select" in answer.text


def test_fs_09_a_profile_that_goes_away_under_the_page_is_refused(
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


def test_fs_09_a_profile_that_goes_away_after_it_was_chosen_is_missed(
    client: FlaskClient, device: Device
) -> None:
    file = install(device, "mine")
    install(device, "yours")
    client.post("/wizard/profile", data={"profile": "mine"})
    file.unlink()
    said = "The profile mine is not installed any more: select another"
    assert said in client.get("/wizard/profile").text
    assert said in client.get("/wizard/review").text


@pytest.mark.parametrize("address", ["profile", "channels", "review"])
def test_http_14_the_name_of_a_profile_is_text_wherever_it_is_shown(
    wizard: MakeWizard, device: Device, address: str
) -> None:
    install(device, "mine", MARKUP)
    client = wizard()
    client.post("/wizard/profile", data={"profile": "mine"})
    page = client.get(f"/wizard/{address}").text
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "<img" not in page
