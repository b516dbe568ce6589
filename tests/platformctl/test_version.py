"""`platformctl version`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from platform_common.version import VERSION
from platformctl import device as installed
from tests.platformctl.conftest import run_on
from tests.support.devices import Device
from tests.support.releases import program


def _version(device: Device) -> dict[str, Any]:
    ended = device.call("version", "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def _limits(**members: Any) -> str:
    usual = {"tier": "high", "ram_mb": 1, "ram_class": "high", "storage_class": "sd"}
    return json.dumps({**usual, "capabilities": {}, "limitations": [], **members})


def test_a_bare_machine_shows_program_kernel_and_shipped_profiles(device: Device) -> None:
    found = _version(device)
    assert [profile["id"] for profile in found.pop("profiles")] == ["hermes", "khoj", "openclaw"]
    assert found == {
        "binary_version": VERSION,
        "channel": "",
        "release_version": "",
        "kernel": os.uname().release,
        "target": "qemu-x86_64",
    }


def test_a_device_shows_its_release_channel_target_and_active_profile(device: Device) -> None:
    device.put("/etc/platform/version", "2026.11.1\n")
    device.put("/etc/platform/update-url", "https://releases.example/appliance/beta\n")
    device.put("/etc/platform/active-profile", "khoj\n")
    device.environment["PLATFORM_LIMITS_FILE"] = str(device.put("/x.json", _limits(target="rpi5")))
    found = _version(device)
    assert (found["release_version"], found["channel"]) == ("2026.11.1", "beta")
    assert found["target"] == "rpi5"
    assert [profile["id"] for profile in found["profiles"] if profile["active"]] == ["khoj"]


def test_the_channel_is_the_last_part_of_the_update_url(device: Device) -> None:
    for url, channel in {
        "https://releases.example/stable": "stable",
        "https://releases.example/stable/": "stable",
        "https://releases.example/dev/?token=x": "dev",
        "https://releases.example/beta#x": "beta",
        "https://releases.example/stable/manifest.json": "",
        "https://releases.example/other": "",
        "https://stable": "",
        "http://[x/stable": "",
        "/media/usb/stable": "stable",
    }.items():
        device.put("/etc/platform/update-url", f"{url}\n")
        assert installed.version(device.paths)[0].channel == channel


def test_the_text_for_people_has_columns_and_in_a_pipe_no_colour(device: Device) -> None:
    device.put("/etc/platform/active-profile", "khoj\n")
    ended = device.call("version")
    assert "\x1b" not in ended.stdout
    assert "Release      -\n" in ended.stdout
    assert "khoj      Khoj          1.32.0     active\n" in ended.stdout


@pytest.mark.parametrize("call", ["version", "model list"])
def test_a_command_imports_only_what_it_needs(device: Device, call: str) -> None:
    ended = run_on(
        device,
        *(sys.executable, "-X", "importtime", program("platformctl"), *call.split(), "--json"),
    )
    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "platformctl.cli" in loaded
    heavy = {"jsonschema", "requests", "rich", "subprocess", "tomlkit"}
    if call == "version":
        heavy |= {"asyncio", "dataclasses", "email", "http", "importlib.resources", "logging"}
        heavy |= {"shutil", "tempfile", "platform_common.storage.atomic_write"}
    assert heavy & loaded == set()
