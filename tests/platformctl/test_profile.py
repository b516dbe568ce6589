"""`platformctl profile`."""

from __future__ import annotations

import json

from platform_common.resources import data_path
from tests.support.devices import Device

_BAD = "[service]\nports = [0]\n"


def test_the_list_shows_name_version_and_the_active_profile(device: Device) -> None:
    device.put("/etc/platform/active-profile", "khoj\n")
    ended = device.call("profile", "list", "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)[1] == {
        "id": "khoj",
        "display_name": "Khoj",
        "pinned_version": "1.32.0",
        "active": True,
    }
    assert (
        json.loads(ended.stdout) == json.loads(device.call("version", "--json").stdout)["profiles"]
    )


def test_d8_the_list_keeps_the_good_profiles_and_fails_for_a_broken_one(device: Device) -> None:
    device.put("/etc/platform/profiles/good.toml", "[profile]\n")
    bad = device.put("/etc/platform/profiles/bad.toml", _BAD)
    ended = device.call("profile", "list", "--json")
    assert ended.returncode == 1
    assert [profile["id"] for profile in json.loads(ended.stdout)] == ["good"]
    said = f"warning: {bad}: service.ports[0]: must be 1 to 65535\n"
    assert ended.stderr == said
    version = device.call("version", "--json")
    assert version.returncode == 0
    assert [profile["id"] for profile in json.loads(version.stdout)["profiles"]] == ["good"]
    assert device.call("profile", "show", "good").returncode == 0
    # A bad profile that is active is reported once, too.
    device.put("/etc/platform/active-profile", "bad\n")
    assert device.call("profile", "list").stderr.count("must be 1 to 65535") == 1


def test_a_profile_is_shown_with_its_defaults(device: Device) -> None:
    device.put("/etc/platform/profiles/my-bot.toml", '[channels]\nports = {sms = ["443/tcp"]}\n')
    document = json.loads(device.call("profile", "show", "my-bot", "--json").stdout)
    assert document["unit"] == "my-bot-gateway.service"
    assert document["channel_ports"] == {"sms": ["443/tcp"]}
    text = device.call("profile", "show", "my-bot").stdout
    assert "Unit          my-bot-gateway.service\n" in text
    assert "Health        -\n" in text
    assert "Ports of sms  443/tcp\n" in text


def test_a_missing_profile_is_an_error(device: Device) -> None:
    for name in ("nobody", "../etc/passwd", "", "A"):
        ended = device.call("profile", "show", name, "--json")
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr.startswith("error: ")


def test_all_installed_profiles_are_checked_unless_some_are_named(device: Device) -> None:
    bad = device.put("/etc/platform/profiles/bad.toml", _BAD)
    good = device.put("/etc/platform/profiles/good.toml", "[profile]\n")
    ended = device.call("profile", "validate")
    assert ended.returncode == 1
    assert ended.stdout == f"good  {good}\n"
    assert ended.stderr == f"error: {bad}: service.ports[0]: must be 1 to 65535\n"
    assert device.call("profile", "validate", "good").returncode == 0
    assert device.call("profile", "validate", "good", "none").returncode == 1


def test_a_file_is_checked_before_it_is_installed(device: Device) -> None:
    text = data_path("profiles/khoj.toml").read_text()
    good = device.put("/home/khoj.toml", text)
    other = device.put("/home/other.toml", text)
    ended = device.call("profile", "validate", good, other, "--json")
    assert ended.returncode == 1
    assert json.loads(ended.stdout) == [
        {"file": str(good), "ok": True, "error": ""},
        {
            "file": str(other),
            "ok": False,
            "error": f"{other}: profile.id: must be other, like the name of the file",
        },
    ]
