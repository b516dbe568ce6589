"""Origins: what can be read from where, and up to which size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from platform_common.errors import AccessError
from release_tools.origins.origin import Origin
from release_tools.origins.stream import MissingError, RefusedUrlError
from release_tools.origins.urls import local_path, show_url


def test_a_file_that_is_not_regular_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/etc/hostname")
    for name in ("fifo", "folder", "link"):
        with pytest.raises(AccessError, match="regular file"):
            Origin().read((tmp_path / name).as_uri(), 10)


@pytest.mark.parametrize(
    "url", ["ftp://host/file", "javascript:alert(1)", "data:,x", "oci://x/y", "do://snapshots/1"]
)
def test_rel_16_a_scheme_that_is_not_fetched_is_refused(url: str) -> None:
    with pytest.raises(RefusedUrlError, match="URLs are not supported"):
        Origin().read(url, 10)


_FROM: dict[str, tuple[str, str]] = {
    "https to file": ("https://host/stable/manifest.json", "file:///etc/passwd"),
    "http to file": ("http://host/stable/manifest.json", "file:///etc/passwd"),
    "store to file": ("s3://bucket/manifest.json", "file:///etc/passwd"),
    "https to http": ("https://host/stable/manifest.json", "http://host/file"),
    "store to http": ("s3://bucket/manifest.json", "http://host/file"),
    "https to store": ("https://host/stable/manifest.json", "s3://bucket/file"),
    "store to another": ("gs://bucket/stable/manifest.json", "s3://bucket/file"),
}


@pytest.mark.parametrize(("of", "url"), _FROM.values(), ids=_FROM)
def test_rel_16_a_manifest_must_not_lead_to_a_weaker_origin(of: str, url: str) -> None:
    # Refused before any connection: the hosts in this table do not exist.
    with pytest.raises(RefusedUrlError):
        Origin().read(url, 10, of=of)


def test_a_file_is_read_up_to_its_limit_whatever_the_name_of_its_folder(
    tmp_path: Path,
) -> None:
    path = tmp_path / os.fsdecode(b"\xff?") / "a b%.json"
    path.parent.mkdir()
    path.write_bytes(b"content")
    # A manifest in a folder may refer to files.
    for of in (None, "file:///elsewhere/manifest.json"):
        assert Origin().read(path.as_uri(), 7, of=of) == b"content"
    with pytest.raises(AccessError, match="larger than 6 bytes"):
        Origin().read(path.as_uri(), 6)
    for missing in (path.with_name("none"), path / "below"):
        with pytest.raises((MissingError, AccessError)):
            Origin().read(missing.as_uri(), 10)


@pytest.mark.parametrize("url", ["file://host/etc/passwd", "file:///a%00b", "file://10.0.0.1/x"])
def test_a_file_of_another_machine_is_refused(url: str) -> None:
    with pytest.raises(RefusedUrlError, match="does not name a file on this machine"):
        local_path(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@host:8443/a?token=x#y", "https://host:8443/a"),
        ("https://host/a%20b", "https://host/a%20b"),
        ("file:///a%20b/c", "/a b/c"),
        ("s3://key:secret@bucket/a", "s3://bucket/a"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert show_url(url) == shown
