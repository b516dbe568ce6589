"""What makes the dashboard an installable app."""

from __future__ import annotations

import json
import re
import struct

import html5lib
import pytest
from flask.testing import FlaskClient

from dev.icons import FOLDER, ICONS
from tests.pwa_app.conftest import Dashboard
from tests.pwa_app.push.test_subscriptions import at
from tests.support.devices import Device


@pytest.fixture
def named(dashboard: Dashboard, device: Device) -> FlaskClient:
    device.put("/etc/hostname", "agent-kitchen\n")
    return dashboard()


def built(client: FlaskClient) -> dict[str, object]:
    """The values that the server writes into the worker."""
    script = client.get("/sw.js").text
    found = re.match(r'"use strict";\nconst BUILT = (\{.*\});\n', script)
    assert found
    members: dict[str, object] = json.loads(found[1])
    return members


def test_the_web_manifest_has_what_a_browser_needs(named: FlaskClient) -> None:
    response = named.get("/manifest.webmanifest")
    assert response.headers["Content-Type"] == "application/manifest+json"
    members = json.loads(response.text)
    assert members["name"] == "agent-kitchen dashboard"
    assert {name: members[name] for name in ("short_name", "id", "start_url", "scope")} == {
        "short_name": "agent-kitchen",
        "id": "/app/dashboard",
        "start_url": "/app/dashboard",
        "scope": "/",
    }
    assert members["display"] == "standalone"
    for colour in ("theme_color", "background_color"):
        assert re.fullmatch(r"#[0-9a-f]{6}", members[colour])


def test_the_icons_and_shortcuts_of_the_web_manifest_exist(named: FlaskClient) -> None:
    members = json.loads(named.get("/manifest.webmanifest").text)
    kinds = {(icon["sizes"], icon["purpose"]) for icon in members["icons"]}
    any_size = {(size, "any") for size in ("any", "192x192", "512x512")}
    assert kinds == any_size | {("512x512", "maskable")}
    for icon in members["icons"]:
        response = named.get(icon["src"])
        assert (response.status_code, response.mimetype) == (200, icon["type"])
        assert "immutable" in response.headers["Cache-Control"]
    routes = {rule.rule for rule in named.application.url_map.iter_rules()}
    assert {shortcut["url"] for shortcut in members["shortcuts"]} < routes


def test_every_page_links_to_the_web_manifest_and_the_home_screen_icon(named: FlaskClient) -> None:
    page = named.get("/app/notifications").text
    assert '<link rel="manifest" href="/manifest.webmanifest">' in page
    assert re.search(r'<link rel="apple-touch-icon" href="/static/icon-180\.png\?v=\w+">', page)


@pytest.mark.parametrize("name", ICONS)
def test_an_icon_has_the_size_in_which_it_is_used(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    assert data[:16] == b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    width, full = ICONS[name]
    *size, depth, colours = struct.unpack(">IIBB", data[16:26])
    assert (size, depth) == ([width, width], 8)
    # Systems that cut the corners themselves need corners that are not transparent.
    assert colours == (2 if full else 6)
    assert len(data) < 24 << 10


def test_push_09_the_worker_only_caches_the_offline_page_and_static_files(
    named: FlaskClient,
) -> None:
    members = built(named)
    files = members["files"]
    assert isinstance(files, list)
    assert members["offline"] == "/offline"
    for url in files:
        assert url.startswith("/static/")
        assert named.get(url).status_code == 200
    # Everything that the offline page loads is available without the device.
    page = named.get("/offline").text
    html5lib.HTMLParser(strict=True).parse(page)
    loaded = re.findall(r'(?:(?:stylesheet|icon)" href|src)="(/static/[^"]+)', page)
    assert {url for url in loaded if "icon-180" not in url} <= set(files)


def test_the_version_of_the_worker_changes_with_the_content_of_its_cache(
    named: FlaskClient, dashboard: Dashboard, device: Device
) -> None:
    first = built(named)["version"]
    assert built(dashboard())["version"] == first
    named.set_cookie("platform-theme", "dark")
    assert built(named)["version"] != first
    device.put("/etc/hostname", "another\n")
    assert built(dashboard())["version"] != first


@pytest.mark.parametrize("name", ['"};alert(1);//', "</script>", "\u2028", "ä" * 40, "\\", "${x}`"])
def test_the_name_of_the_device_is_escaped_in_the_worker(
    dashboard: Dashboard, device: Device, name: str
) -> None:
    device.put("/etc/hostname", name)
    client = dashboard()
    title = json.loads(client.get("/manifest.webmanifest").text)["short_name"]
    assert built(client)["title"] == title
    assert client.get("/sw.js").data.isascii()


def test_the_worker_is_not_cached_and_does_not_take_over_open_pages(named: FlaskClient) -> None:
    response = named.get("/sw.js")
    assert (response.status_code, response.mimetype) == (200, "text/javascript")
    assert response.headers["Cache-Control"] == "no-cache"
    script = re.sub(r"//.*", "", response.text)
    for never in ("skipWaiting", "claim", "/app/logs", "/app/keys"):
        assert never not in script


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (0, "No browser has subscribed yet."),
        (1, "One browser has"),
        (3, "3 browsers have"),
        (None, "We could not find out how many browsers have subscribed."),
    ],
)
def test_the_page_shows_the_number_of_subscriptions_and_has_no_test_button(
    named: FlaskClient, device: Device, lines: int | None, words: str
) -> None:
    path = device.path("/var/lib/platform/push-subscriptions.jsonl")
    if lines is None:
        path.mkdir()
    else:
        kept = (json.dumps(at(f"https://push.example.com/{n}")) for n in range(lines))
        path.write_text("".join(f"{line}\n" for line in kept))
    page = named.get("/app/notifications").text
    html5lib.HTMLParser(strict=True).parse(page)
    assert words in page
    assert "You can't send a test message yet" in page
    assert "disabled" not in page
    assert "/app/push/test" not in page
