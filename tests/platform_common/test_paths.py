"""Paths of the device: one root, and variables that override single paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_common import paths as places
from platform_common.errors import PlatformError
from platform_common.paths import AIRGAP, LIMITS, PROVIDERS, SECRETS, Paths, Place
from platform_common.resources import data_path
from tests.support.devices import Device
from tests.support.odd_files import make

_PLACES = [place for place in vars(places).values() if isinstance(place, Place)]


def test_the_default_root_is_that_of_the_machine() -> None:
    assert Paths.from_env({}).root == Path("/")
    assert Paths.from_env({"PLATFORM_ROOT": ""}).root == Path("/")
    assert Paths.from_env({"PLATFORM_ROOT": "dev-out"}).root == Path("dev-out")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        pytest.param("/etc/hostname", "etc/hostname", id="absolute"),
        pytest.param("//etc//x/", "etc/x", id="slashes"),
        pytest.param("~/.khoj", "home/agent/.khoj", id="the-home-of-agent"),
        pytest.param("/a/..b/c..", "a/..b/c..", id="dots-in-a-name"),
        pytest.param("/", "", id="the-root"),
    ],
)
def test_device_paths_are_resolved_below_the_root(path: str, found: str) -> None:
    assert Paths(Path("/dev-out"), {}).on_device(path) == Path("/dev-out", found)


@pytest.mark.parametrize("path", ["", "x", "./x", "~", "~x/y", "/a/../b", "/..", "~/../x", "a\nb"])
def test_an_invalid_path_on_the_device_is_refused(path: str) -> None:
    with pytest.raises(PlatformError, match="is not a path on the device"):
        Paths(Path("/dev-out"), {}).on_device(path)


def test_a_variable_overrides_the_device_and_the_device_overrides_the_package(
    device: Device, tmp_path: Path
) -> None:
    assert device.paths.find(PROVIDERS) == places.Found(data_path("providers.json"), shipped=True)
    own = device.put("/etc/platform/providers.json", "{}")
    assert device.paths.find(PROVIDERS) == places.Found(own)
    device.environment["PLATFORM_PROVIDERS_FILE"] = str(tmp_path / "x")
    assert device.paths.find(PROVIDERS) == places.Found(tmp_path / "x")
    device.environment["PLATFORM_PROVIDERS_FILE"] = ""
    assert device.paths.find(PROVIDERS) == places.Found(own)


@pytest.mark.parametrize("kind", ["dangling link", "folder", "FIFO", "file-for-a-parent"])
def test_a_shipped_default_never_hides_a_path_on_the_device(device: Device, kind: str) -> None:
    path = device.path("/etc/platform/limits.json")
    if kind == "file-for-a-parent":
        path.parent.rmdir()
        path.parent.write_text("")
    else:
        make(kind, path)
    assert device.paths.find(LIMITS) == places.Found(path)


def test_a_record_is_written_to_the_place_that_is_read_first(
    device: Device, tmp_path: Path
) -> None:
    assert device.paths.find(SECRETS).path == device.root / "etc/platform/secrets.env"
    assert device.paths.path_of(PROVIDERS) == device.root / "etc/platform/providers.json"
    device.environment["PLATFORM_PROVIDERS_FILE"] = str(tmp_path / "x")
    assert device.paths.path_of(PROVIDERS) == tmp_path / "x"
    assert not device.paths.has(AIRGAP)
    device.put("/etc/platform/airgap.flag", "")
    assert device.paths.has(AIRGAP)


def test_every_place_is_absolute_and_unique_and_shipped_files_exist() -> None:
    for place in _PLACES:
        assert place.device.startswith("/")
        assert not place.shipped or data_path(place.shipped).exists()
    variables = [place.variable for place in _PLACES if place.variable]
    for each in (variables, [place.device for place in _PLACES]):
        assert len(set(each)) == len(each)
