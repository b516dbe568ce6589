"""Where manifests and artefacts are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from platform_common.errors import AccessError
from release_tools.distribution.layout import unexpected_files
from release_tools.distribution.manifest_location import (
    ManifestLocation,
    UnsignedError,
    find_manifests,
)
from release_tools.manifest.document import Manifest
from release_tools.manifest.parser import parse
from release_tools.manifest.vocabulary import CHANNELS
from release_tools.origins.origin import Origin
from tests.support.manifests import document, encode, entry
from tests.support.raw_server import serving
from tests.support.releases import VERSION

MANIFEST = ManifestLocation("https://host/base/stable/manifest.json")
IMAGE = f"platform-openclaw-rpi5-{VERSION}-stable.img.xz"


def found_at(location: str, *, unsigned: bool = False) -> list[str]:
    """The URLs of the manifests at `location`."""
    found = find_manifests(location, Origin(), unsigned=unsigned)
    return [manifest.location.url for manifest in found]


def _manifest(**members: Any) -> Manifest:
    artefact = entry(filename=IMAGE, minisig_url=f"{VERSION}/{IMAGE}.minisig")
    del artefact["url"]
    return parse(encode(document(artefacts=[artefact | members])))


_BESIDE = f"https://host/base/stable/{VERSION}/{IMAGE}"
_URLS: dict[str, tuple[dict[str, str], str]] = {
    "no url": ({}, _BESIDE),
    "relative": ({"url": f"{VERSION}/{IMAGE}"}, _BESIDE),
    "with a dot": ({"url": f"./{VERSION}/{IMAGE}"}, _BESIDE),
    "from the server's root": ({"url": "/images/1"}, "https://host/images/1"),
    "absolute": ({"url": "https://cdn/x?y=1"}, "https://cdn/x?y=1"),
    "a store": ({"url": "s3://bucket/x"}, "s3://bucket/x"),
    "a scheme that is not fetched": ({"url": "magnet:?xt=1"}, _BESIDE),
    "a reference": ({"url": "https://registry/x", "format": "oci"}, _BESIDE),
}


@pytest.mark.parametrize(("members", "url"), _URLS.values(), ids=_URLS)
def test_where_the_bytes_of_an_artefact_are(members: dict[str, str], url: str) -> None:
    manifest = _manifest(**members)
    assert MANIFEST.artefact_url(manifest, manifest.artefacts[0]) == url
    odd = _manifest(filename="a b#c?.img.xz")
    assert MANIFEST.artefact_url(odd, odd.artefacts[0]).endswith("/a%20b%23c%3F.img.xz")


@pytest.mark.parametrize("place", ["", "stable", "stable/manifest.json"])
def test_a_manifest_is_found_from_every_location(place: str, signed_release: Path) -> None:
    wanted = [(signed_release / "stable/manifest.json").as_uri()]
    assert found_at(str(signed_release / place)) == wanted
    assert found_at(f"/{signed_release / place}") == wanted
    assert found_at((signed_release / place).as_uri()) == wanted


def test_every_channel_of_a_root_is_found(tmp_path: Path) -> None:
    for channel in ("stable", "dev", "other"):
        (tmp_path / channel).mkdir()
        (tmp_path / channel / "manifest.json").write_bytes(b"{}")
    found = [Path(url).parent.name for url in found_at(str(tmp_path))]
    assert found == ["dev", "stable"]


def test_a_folder_without_a_manifest_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"holds no manifest\.json"):
        found_at(str(tmp_path))
    with pytest.raises(AccessError, match="does not exist"):
        found_at(str(tmp_path / "none"))


def test_pub_03_an_unsigned_manifest_is_found_only_when_asked_for(tmp_path: Path) -> None:
    waiting = tmp_path / "stable/manifest.json.unsigned"
    waiting.parent.mkdir()
    waiting.write_bytes(b"{}")
    for place in (tmp_path, tmp_path / "stable", waiting):
        with pytest.raises(UnsignedError):
            found_at(str(place))
        assert found_at(str(place), unsigned=True) == [waiting.as_uri()]


def test_a_signed_manifest_is_preferred_to_an_unsigned_one(tmp_path: Path) -> None:
    for name in ("manifest.json", "manifest.json.unsigned"):
        (tmp_path / name).write_bytes(b"{}")
    wanted = [(tmp_path / "manifest.json").as_uri()]
    assert found_at(str(tmp_path), unsigned=True) == wanted


def test_a_manifest_with_a_known_url_is_not_fetched_to_find_it() -> None:
    with serving({"/stable/manifest.json": b"{}"}) as server:
        assert found_at(f"{server.url}/stable") == [f"{server.url}/stable/manifest.json"]
        named = f"{server.url}/some/where.json"
        assert found_at(named) == [named]
        assert server.paths == []


@pytest.mark.parametrize("folder", ["", "/beta", "/stable"])
def test_a_manifest_at_a_root_url_is_fetched_once(folder: str) -> None:
    with serving({f"{folder}/manifest.json": b"{}"}) as server:
        origin = Origin()
        (found,) = find_manifests(server.url, origin)
        assert found.location.url == f"{server.url}{folder}/manifest.json"
        assert found.read(origin) == b"{}"
        channels = [f"/{channel}/manifest.json" for channel in CHANNELS] if folder else []
        assert server.paths == ["/manifest.json", *channels]


def test_a_server_without_any_manifest_is_an_error() -> None:
    with serving({}) as server, pytest.raises(AccessError, match="no channel has one either"):
        found_at(server.url)


def test_a_location_that_is_not_a_url_is_an_error() -> None:
    for location in ("http://[bad", "https://[::1", "http://\u2102\u2100/stable", "file://[x"):
        with pytest.raises(AccessError, match="not a valid URL"):
            found_at(location)


def test_a_folder_on_a_server_may_have_a_query_and_a_fragment() -> None:
    found = found_at("HTTPS://host/stable/?token=a/b#c")
    assert found == ["https://host/stable/manifest.json?token=a/b"]


@pytest.mark.parametrize("place", ["stable", "stable/manifest.json", "stable/../stable"])
def test_rel_05_a_linked_folder_has_the_channel_of_its_own_name(place: str, tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/manifest.json").write_bytes(b"{}")
    (tmp_path / "stable").symlink_to("dev")
    wanted = [(tmp_path / "stable/manifest.json").as_uri()]
    assert found_at(str(tmp_path / place)) == wanted


def test_files_that_no_entry_names_are_unexpected(tmp_path: Path) -> None:
    release = tmp_path / VERSION
    release.mkdir()
    for name in (IMAGE, f"{IMAGE}.minisig", "b.txt", "a.txt"):
        (release / name).write_bytes(b"")
    (release / "folder").mkdir()
    (release / "an image").touch()
    named = _manifest(url=f"{VERSION}/an%20image")
    assert f"{VERSION}/an image" not in set(unexpected_files(tmp_path, named))
    (release / "an image").unlink()
    found = list(unexpected_files(tmp_path, _manifest()))
    assert found == [f"{VERSION}/a.txt", f"{VERSION}/b.txt", f"{VERSION}/folder"]
