"""Which profiles a device has; one broken file does not affect the others."""

from __future__ import annotations

import pytest

from platform_common.records.installed_profiles import active_profile, installed_profiles, profile
from platform_common.records.record_file import MissingRecordError, RecordError
from tests.support.devices import Device

_RULE = "must be lower-case letters and digits, in parts joined by hyphens"


def _names(device: Device) -> list[str]:
    return [found.id for found in installed_profiles(device.paths).profiles]


def test_a_folder_on_the_device_replaces_the_shipped_one(device: Device) -> None:
    assert _names(device) == ["hermes", "khoj", "openclaw"]
    assert not installed_profiles(device.paths).problems
    device.put("/etc/platform/profiles/b.toml", "[profile]\n")
    device.put("/etc/platform/profiles/a.toml", "[profile]\n")
    device.put("/etc/platform/profiles/.c.toml.1.abcdef01.tmp", "x")
    device.put("/etc/platform/profiles/.d.toml", "x")
    device.put("/etc/platform/profiles/README", "x")
    assert _names(device) == ["a", "b"]


def test_d8_broken_profiles_are_reported_and_the_others_work(device: Device) -> None:
    device.put("/etc/platform/profiles/good.toml", "[profile]\n")
    bad = device.put("/etc/platform/profiles/bad.toml", "[service]\nports = [0]\n")
    link = device.path("/etc/platform/profiles/link.toml")
    link.symlink_to("good.toml")
    upper = device.put("/etc/platform/profiles/Upper.toml", "[profile]\n")
    found = installed_profiles(device.paths)
    assert [one.id for one in found.profiles] == ["good"]
    assert [error.message for error in found.problems] == [
        f"{upper}: the name of the file {_RULE}",
        f"{bad}: service.ports[0]: must be 1 to 65535",
        f"{link} is a symbolic link, not a regular file",
    ]
    device.put("/etc/platform/active-profile", "bad\n")
    with pytest.raises(RecordError, match=r"bad\.toml: service\.ports"):
        active_profile(device.paths)


def test_a_path_that_is_not_a_folder_is_an_error(device: Device) -> None:
    device.put("/etc/platform/profiles", "")
    with pytest.raises(RecordError, match="Not a directory"):
        installed_profiles(device.paths)


@pytest.mark.parametrize("profile_id", ["", "../hermes", "/etc/x", "A", "a\0", "a" * 300])
def test_an_invalid_id_is_not_looked_up(device: Device, profile_id: str) -> None:
    with pytest.raises(RecordError, match=r"^The profile id "):
        profile(device.paths, profile_id)


def test_the_active_profile_is_read_from_its_file(device: Device) -> None:
    assert active_profile(device.paths) is None
    device.put("/etc/platform/active-profile", "khoj\n")
    found = active_profile(device.paths)
    assert found is not None
    assert found.unit == "khoj-gateway.service"


def test_a_profile_that_is_not_installed_is_reported_with_the_folder_of_profiles(
    device: Device,
) -> None:
    with pytest.raises(MissingRecordError, match=r"other\.toml: there is no such file") as missing:
        profile(device.paths, "other")
    assert missing.value.hint == "List the profiles with: platformctl profile list"
    path = device.put("/etc/platform/active-profile", "other\n")
    with pytest.raises(RecordError) as error:
        active_profile(device.paths)
    assert error.value.message == f"{path}: the profile other is not installed"
    assert "profile list" in error.value.hint
    assert not isinstance(error.value, MissingRecordError)


@pytest.mark.parametrize("line", ["", "\n", "a\nb\n", " khoj\n", "../khoj\n", "kh\x1boj\n"])
def test_an_invalid_id_of_the_active_profile_is_an_error(device: Device, line: str) -> None:
    path = device.put("/etc/platform/active-profile", line)
    with pytest.raises(RecordError) as error:
        active_profile(device.paths)
    assert error.value.message.startswith(f"{path}: must be ")
