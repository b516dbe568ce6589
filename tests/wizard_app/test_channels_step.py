"""The step that chooses the channels."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from platform_common.channel_names import channel_name
from platform_common.installed_profiles import installed_profiles
from platform_common.paths import Paths
from tests.support.dashboard_states import MARKUP
from tests.support.devices import Device
from wizard_app.steps.channels import ChannelsAnswer

CHANNELS = ("telegram", "slack", "discord", "matrix", "pigeon-post")


def install(device: Device, profile_id: str, channels: tuple[str, ...] = CHANNELS) -> None:
    """Install a profile with those channels."""
    supported = json.dumps(list(channels))
    device.put(
        f"/etc/platform/profiles/{profile_id}.toml",
        f'[profile]\ndisplay_name = "My {profile_id}"\n[channels]\nsupported = {supported}\n',
    )


def limit(device: Device, *disabled: str) -> None:
    """Have the device too little memory for those channels; it says why for Discord."""
    reason = {"id": "no-discord", "reason": "It keeps <much>.", "unblock": "Take another."}
    record = {
        "target": "test",
        "tier": "low",
        "ram_mb": 2048,
        "ram_class": "low",
        "storage_class": "sd",
        "capabilities": {"channels_disabled_by_ram": disabled, "channels_heavy": ["telegram"]},
        "limitations": [reason],
    }
    device.put("/etc/platform/limits.json", json.dumps(record))


@pytest.fixture
def chosen(client: FlaskClient, device: Device) -> FlaskClient:
    """A wizard whose profile is chosen, on a device too small for Discord and Matrix."""
    install(device, "mine")
    limit(device, "discord", "matrix", "discord-voice")
    assert client.post("/wizard/profile", data={"profile": "mine"}).status_code == 302
    return client


def answers(state_file: Path) -> Any:
    """The answers as they are stored."""
    return json.loads(state_file.read_bytes())["answers"]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ([], []),
        ([""], []),
        (["telegram"], ["telegram"]),
        (["slack", "telegram"], ["telegram", "slack"]),
        (["slack", "slack", "telegram", "slack"], ["telegram", "slack"]),
        (["pigeon-post"], ["pigeon-post"]),
    ],
)
def test_channels_of_the_profile_are_stored_once_and_in_its_order(
    chosen: FlaskClient, state_file: Path, sent: list[str], stored: list[str]
) -> None:
    answer = chosen.post("/wizard/channels", data={"channels": sent})
    assert (answer.status_code, answer.location) == (302, "/wizard/ssh")
    assert answers(state_file)["channels"] == stored


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (["irc"], "My mine does not support IRC"),
        (["telegram", "irc", "qq"], "does not support IRC, QQ"),
        (["nobody-knows"], "does not support nobody-knows"),
        (["Telegram"], "Choose from the channels of My mine"),
        (["telegram,slack"], "Choose from the channels of My mine"),
        (["../telegram"], "Choose from the channels of My mine"),
        (["tele\0gram"], "Choose from the channels of My mine"),
        (["telegram", MARKUP], "Choose from the channels of My mine"),
        (["x" * 70_000], "Choose from the channels of My mine"),
        ([f"c{number}" for number in range(900)], "does not support c0, c1, c2, c3, c4:"),
    ],
)
def test_another_channel_is_refused(
    chosen: FlaskClient, state_file: Path, sent: list[str], said: str
) -> None:
    answer = chosen.post("/wizard/channels", data={"channels": sent})
    assert answer.status_code == 200
    assert '<div class="error">' in answer.text
    assert said in answer.text
    assert MARKUP not in answer.text
    assert "channels" not in answers(state_file)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (["discord"], "Discord is not available on this device: it needs more memory"),
        (["telegram", "matrix"], "Matrix is not available on this device: it needs more memory"),
        (["discord", "matrix"], "Discord, Matrix are not available on this device"),
        # Neither the profile nor the device has it: that the device is too small comes first.
        (["discord-voice"], "Discord by voice is not available on this device"),
        (["irc", "discord"], "Discord is not available on this device"),
    ],
)
def test_a_channel_that_the_device_is_too_small_for_is_refused_with_422(
    chosen: FlaskClient, state_file: Path, sent: list[str], said: str
) -> None:
    answer = chosen.post("/wizard/channels", data={"channels": sent})
    assert answer.status_code == 422
    assert '<div class="error">' in answer.text
    assert said in answer.text
    assert "channels" not in answers(state_file)


def test_what_was_ticked_stays_ticked_beside_an_error(chosen: FlaskClient) -> None:
    page = chosen.post("/wizard/channels", data={"channels": ["slack", "discord"]}).text
    assert re.findall(r'value="([a-z-]+)" checked', page) == ["slack"]


def test_a_disabled_channel_is_text_with_its_reason_and_no_input(chosen: FlaskClient) -> None:
    page = chosen.get("/wizard/channels").text
    assert re.findall(r'type="checkbox" value="([a-z-]+)"', page) == [
        *("telegram", "slack", "pigeon-post")
    ]
    _, _, disabled = page.partition("Not available on this device")
    assert "Discord" in disabled
    assert "It keeps &lt;much&gt;. Take another." in disabled
    assert "Matrix" in disabled
    assert "It needs more memory than this device has." in disabled
    assert "voice" not in disabled


def test_the_page_says_what_no_channel_means(chosen: FlaskClient) -> None:
    assert "private chat of this device alone" in chosen.get("/wizard/channels").text
    chosen.post("/wizard/channels")
    assert "Only the private chat" in chosen.get("/wizard/review").text


def test_a_device_too_small_for_every_channel_leaves_the_private_chat(
    chosen: FlaskClient, device: Device
) -> None:
    limit(device, *CHANNELS)
    page = chosen.post("/wizard/channels", data={"channels": ["slack"]})
    assert page.status_code == 422
    assert "There is no channel to choose" in page.text
    assert 'id="channels"' in page.text
    assert chosen.post("/wizard/channels").status_code == 302


def test_without_a_profile_the_page_leads_to_that_step(
    client: FlaskClient, state_file: Path
) -> None:
    page = client.get("/wizard/channels").text
    assert 'href="/wizard/profile"' in page
    assert "checkbox" not in page
    answer = client.post("/wizard/channels", data={"channels": ["telegram"]})
    assert answer.status_code == 200
    assert "Choose a profile first" in answer.text
    assert not state_file.exists()


def test_ses_12_channels_are_looked_at_again_once_the_profile_is_another(
    chosen: FlaskClient, device: Device
) -> None:
    install(device, "other", ("slack", "irc"))
    chosen.post("/wizard/channels", data={"channels": ["telegram", "slack"]})
    moved = chosen.post("/wizard/profile", data={"profile": "other", "return": "review"})
    assert moved.location.startswith("/wizard/channels")
    said = "My other does not support Telegram: choose from its channels"
    page = chosen.get("/wizard/channels").text
    assert said in page
    assert re.findall(r'value="([a-z-]+)" checked', page) == ["slack"]
    assert said in chosen.get("/wizard/review").text
    chosen.post("/wizard/channels", data={"channels": ["slack"]})
    assert said not in chosen.get("/wizard/review").text


def test_fs_09_a_device_that_became_too_small_is_seen_at_the_post_and_after_it(
    chosen: FlaskClient, device: Device
) -> None:
    assert chosen.post("/wizard/channels", data={"channels": ["slack"]}).status_code == 302
    limit(device, "slack")
    assert chosen.post("/wizard/channels", data={"channels": ["slack"]}).status_code == 422
    said = "Slack is not available on this device: it needs more memory"
    assert said in chosen.get("/wizard/channels").text
    assert said in chosen.get("/wizard/review").text


@pytest.mark.parametrize(
    "channels", [("Telegram",), ("../x",), ("",), ("a\n",), tuple(f"c{n}" for n in range(65))]
)
def test_an_answer_that_holds_no_ids_is_refused_whoever_wrote_it(channels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"^channels(\[0\])?: must be"):
        ChannelsAnswer(channels)


def test_every_channel_of_a_shipped_profile_has_a_name(device: Device) -> None:
    profiles = installed_profiles(Paths(device.root, {})).profiles
    ids = {channel for profile in profiles for channel in profile.channels}
    assert len(ids) > 30
    assert {one for one in ids if str(channel_name(one)) == one} == set()
