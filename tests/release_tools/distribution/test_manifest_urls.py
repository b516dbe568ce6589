"""Where the URLs in a manifest lead, and which of them leave its folder."""

from __future__ import annotations

import pytest

from release_tools.distribution.manifest_location import ManifestLocation

HTTPS = "https://dl.example/stable/manifest.json"
LOCAL = "http://127.0.0.1:8080/dist/stable/manifest.json?token=a/b"
FILE = "file:///srv/dist/stable/manifest.json"
STORE = "s3://bucket/dist/stable/manifest.json"

RESOLUTIONS = [
    (HTTPS, "2026.11.1/f.qcow2", "https://dl.example/stable/2026.11.1/f.qcow2"),
    (HTTPS, "f", "https://dl.example/stable/f"),
    (HTTPS, "./f", "https://dl.example/stable/f"),
    (HTTPS, "../beta/f", "https://dl.example/beta/f"),
    (HTTPS, "../../../f", "https://dl.example/f"),
    (HTTPS, "/abs/f", "https://dl.example/abs/f"),
    (HTTPS, "//other.example/f", "https://other.example/f"),
    (HTTPS, "f?token=1", "https://dl.example/stable/f?token=1"),
    (HTTPS, "?x=1", "https://dl.example/stable/manifest.json?x=1"),
    (HTTPS, "a%20b", "https://dl.example/stable/a%20b"),
    (HTTPS, "a%2Fb", "https://dl.example/stable/a%2Fb"),
    (HTTPS, "http/f", "https://dl.example/stable/http/f"),
    (HTTPS, ".", "https://dl.example/stable/"),
    (HTTPS, "..", "https://dl.example/"),
    (HTTPS, "https://cdn.example/f", "https://cdn.example/f"),
    (HTTPS, "HTTPS://CDN.Example/../F", "HTTPS://CDN.Example/../F"),
    (HTTPS, "http://cdn.example/f", "http://cdn.example/f"),
    (HTTPS, "file:///etc/passwd", "file:///etc/passwd"),
    (HTTPS, "oci://registry.example/n@sha256:ab", "oci://registry.example/n@sha256:ab"),
    (HTTPS, "do://snapshots/17", "do://snapshots/17"),
    (HTTPS, "s3://bucket/f", "s3://bucket/f"),
    (HTTPS, "javascript:alert(1)", "javascript:alert(1)"),
    (HTTPS, "oci:name", "oci:name"),
    ("https://dl.example/manifest.json", "v/f", "https://dl.example/v/f"),
    ("https://user@dl.example/a/manifest.json", "f", "https://user@dl.example/a/f"),
    ("https://[::1]:8443/a/manifest.json", "v/f", "https://[::1]:8443/a/v/f"),
    ("HTTPS://dl.example/a/manifest.json", "v/f", "https://dl.example/a/v/f"),
    ("https://dl.example/a/manifest.json#x", "v/f", "https://dl.example/a/v/f"),
    ("https://dl.example/a%20b/manifest.json", "f", "https://dl.example/a%20b/f"),
    (LOCAL, "v/f", "http://127.0.0.1:8080/dist/stable/v/f"),
    (LOCAL, "/f", "http://127.0.0.1:8080/f"),
    (LOCAL, "https://cdn.example/f", "https://cdn.example/f"),
    (FILE, "2026.11.1/f", "file:///srv/dist/stable/2026.11.1/f"),
    (FILE, "../f", "file:///srv/dist/f"),
    (FILE, "/etc/passwd", "file:///etc/passwd"),
    (FILE, "//host/share/f", "file://host/share/f"),
    (FILE, "https://dl.example/f", "https://dl.example/f"),
    (FILE, "file:///else/f", "file:///else/f"),
    (FILE, "a%2e/b%20c", "file:///srv/dist/stable/a%2e/b%20c"),
    (STORE, "2026.11.1/f", "s3://bucket/dist/stable/2026.11.1/f"),
    (STORE, "../beta/f", "s3://bucket/dist/beta/f"),
    (STORE, "/f", "s3://bucket/f"),
    (STORE, "//other/f", "s3://other/f"),
    (STORE, "s3://other/f", "s3://other/f"),
    ("gs://bucket/manifest.json", "v/f", "gs://bucket/v/f"),
    ("az://container/a/manifest.json", "./v/f", "az://container/a/v/f"),
]


@pytest.mark.parametrize(("base", "url", "expected"), RESOLUTIONS)
def test_rel_16_a_url_leads_where_the_specification_says(
    base: str, url: str, expected: str
) -> None:
    assert ManifestLocation(base).resolve(url) == expected


OUTWARD = (
    *("../f", "..", "a/../../f", "/f", "/stable/../f", "//dl.example:1/stable/f"),
    *("//other.example/f", "%2e%2e/f", "%2E%2e/f", ".%2e/f", "%2e./f", "a/%2e%2e/%2e%2e/f"),
    *("..%2ff", "..%2Ff", "a%2f..%2f..%2ff", "..\\f", "a\\..\\..\\f", "..%5cf", "..%5Cf"),
    *("%2e%2e%5Cf", "a/.."),
)
INWARD = (
    *("f", "v/f", "./f", "v/./f", "v//f", "...", "..f", "f..", "a..b/f", "v/...", "%2e%2ef"),
    *("?x=../y", "#../y", "%252e%252e/f", "2026.11.1-../f"),
    *("https://other.example/../f", "oci://registry.example/../x", "file:///etc/passwd"),
)


@pytest.mark.parametrize("base", [HTTPS, LOCAL, FILE, STORE], ids=["https", "http", "file", "s3"])
@pytest.mark.parametrize("url", [*OUTWARD, *INWARD])
def test_rel_16_a_relative_url_that_leaves_the_folder_is_noticed(base: str, url: str) -> None:
    assert ManifestLocation(base).leaves_folder(url) is (url in OUTWARD)
