"""The channels step."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from platform_common.paths import Paths
from platform_common.records.channel_names import channel_name
from platform_common.records.installed_profiles import installed_profiles
from tests.support.dashboard_states import MARKUP
from tests.support.devices import Device
from tests.wizard_app.step_pages import StepPage

SLUG = "channels"
PROFILES = "/etc/platform/profiles"
CHANNELS = ("telegram", "slack", "discord", "matrix", "pigeon-post")


def install(
    device: Device,
    profile_id: str,
    channels: tuple[str, ...] = CHANNELS,
    *,
    name: str = "",
    need_mb: int = 0,
) -> Path:
    """Install a profile with these channels."""
    shown, supported = json.dumps(name or f"My {profile_id}"), json.dumps(list(channels))
    return device.put(
        f"{PROFILES}/{profile_id}.toml",
        f"[profile]\ndisplay_name = {shown}\nmin_ram_mb = {need_mb}\n"
        f"[channels]\nsupported = {supported}\n",
    )


def limit(device: Device, *disabled: str, ram_mb: int = 2048) -> None:
    """Give the device limits with that memory, too little for the disabled channels."""
    record = {
        "target": "test",
        "tier": "low",
        "ram_mb": ram_mb,
        "ram_class": "low",
        "storage_class": "sd",
        "capabilities": {"channels_disabled_by_ram": disabled, "channels_heavy": ["telegram"]},
        "limitations": [
            {"id": "no-discord", "reason": "It keeps <much>.", "unblock": "Take another."}
        ],
    }
    device.put("/etc/platform/limits.json", json.dumps(record))


def choose(step: StepPage, profile: str, **more: str) -> str | None:
    """Choose a profile; return the address that follows."""
    return step.client.post("/wizard/profile", data={"profile": profile, **more}).location


def ticked(page: str) -> list[str]:
    return re.findall(r'value="([a-z-]+)" checked', page)


@pytest.fixture
def chosen(step: StepPage, device: Device) -> StepPage:
    """The page of a wizard with a profile, on a device too small for Discord and Matrix."""
    install(device, "mine")
    limit(device, "discord", "matrix", "discord-voice")
    assert choose(step, "mine")
    return step


def test_channels_of_the_profile_are_stored_once_and_in_its_order(chosen: StepPage) -> None:
    for sent, stored in (
        ([], []),
        ([""], []),
        (["telegram"], ["telegram"]),
        (["slack", "telegram"], ["telegram", "slack"]),
        (["slack", "slack", "telegram", "slack"], ["telegram", "slack"]),
        (["pigeon-post"], ["pigeon-post"]),
    ):
        assert chosen.accept({"channels": sent}) == "/wizard/ssh"
        assert chosen.stored["channels"] == stored


# Channels of another profile, unknown ones, and ones that the device is too small for.
REFUSED: list[tuple[int, list[str], str]] = [
    (200, ["irc"], "My mine does not support IRC"),
    (200, ["telegram", "irc", "qq"], "does not support IRC, QQ"),
    (200, ["nobody-knows"], "does not support nobody-knows"),
    *(
        (200, sent, "Choose from the channels of My mine")
        for sent in (
            *(["Telegram"], ["telegram,slack"], ["../telegram"], ["tele\0gram"]),
            *(["telegram", MARKUP], ["x" * 70_000]),
        )
    ),
    (200, [f"c{number}" for number in range(900)], "does not support c0, c1, c2, c3, c4:"),
    (422, ["discord"], "Discord is not available on this device: it needs more memory"),
    (422, ["telegram", "matrix"], "Matrix is not available on this device: it needs more memory"),
    (422, ["discord", "matrix"], "Discord, Matrix are not available on this device"),
    # Neither the profile nor the device has it: the message about the device comes first.
    (422, ["discord-voice"], "Discord voice is not available on this device"),
    (422, ["irc", "discord"], "Discord is not available on this device"),
]


def test_unknown_channels_are_refused_and_ones_that_need_more_memory_with_422(
    chosen: StepPage,
) -> None:
    for status, sent, said in REFUSED:
        page = chosen.refuse({"channels": sent}, status=status)
        assert said in page
        assert MARKUP not in page
        # Available channels that were ticked stay ticked.
        assert ticked(page) == [one for one in sent if one == "telegram"]


def test_a_disabled_channel_is_text_with_its_reason_and_no_input(chosen: StepPage) -> None:
    page = chosen.text
    offered = re.findall(r'type="checkbox" value="([a-z-]+)"', page)
    assert offered == ["telegram", "slack", "pigeon-post"]
    _, _, disabled = page.partition("Not available on this device")
    assert "voice" not in disabled
    for words in (
        *("Discord", "It keeps &lt;much&gt;. Take another.", "Matrix"),
        "It needs more memory than this device has.",
    ):
        assert words in disabled


def test_the_page_explains_what_no_channel_means(chosen: StepPage, device: Device) -> None:
    assert "use only the private chat of this device" in chosen.text
    limit(device, *CHANNELS)
    page = chosen.refuse({"channels": ["slack"]}, status=422)
    assert "There is no channel to choose" in page
    assert 'id="channels"' in page
    chosen.accept({})
    assert "Only the private chat" in chosen.review


def test_without_a_profile_the_page_links_to_that_step(step: StepPage) -> None:
    assert 'href="/wizard/profile"' in step.text
    assert "checkbox" not in step.text
    assert "Choose a profile first" in step.refuse({"channels": ["telegram"]})


def test_ses_12_after_a_change_of_the_profile_channels_are_asked_again(
    chosen: StepPage, device: Device
) -> None:
    install(device, "other", ("slack", "irc"))
    chosen.accept({"channels": ["telegram", "slack"]})
    moved = choose(chosen, "other", **{"return": "review"})
    assert moved == "/wizard/channels?return=review"
    said = "My other does not support Telegram: choose from its channels"
    assert said in chosen.text
    assert ticked(chosen.text) == ["slack"]
    assert said in chosen.review
    chosen.accept({"channels": ["slack"]})
    assert said not in chosen.review


def test_fs_09_a_channel_that_became_unavailable_is_reported(
    chosen: StepPage, device: Device
) -> None:
    chosen.accept({"channels": ["slack"]})
    limit(device, "slack")
    chosen.refuse({"channels": ["slack"]}, status=422)
    said = "Slack is not available on this device: it needs more memory"
    assert said in chosen.text
    assert said in chosen.review


def test_every_channel_of_a_shipped_profile_has_a_name(device: Device) -> None:
    profiles = installed_profiles(Paths(device.root, {})).profiles
    ids = {channel for profile in profiles for channel in profile.channels}
    assert len(ids) > 30
    assert {one for one in ids if str(channel_name(one)) == one} == set()
