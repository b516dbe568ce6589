"""The system page, and the preferences of a browser."""

from __future__ import annotations

import re

import pytest
from flask.testing import FlaskClient

from platform_common.version import VERSION
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.system_states import STATES


def page(client: FlaskClient, address: str = "/app/system") -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.text


def root_of(client: FlaskClient) -> str:
    """The start tag of the document."""
    found = re.search(r"<html[^>]*>", page(client))
    assert found
    return found[0]


@pytest.mark.parametrize(
    ("state", "there"),
    [
        (
            "fine",
            [
                *("OpenClaw 2026.10.2", "Also installed: Hermes, Khoj", "Running", "Up for 3 days"),
                *("2026.11.3", "stable", "rpi5-16gb", "6.12.48+deb13-arm64", VERSION),
            ],
        ),
        ("stopped", ["Failed"]),
        ("failing", ["Unknown", "Not reported", 'class="stub"', VERSION]),
        ("without-members", ["Unknown", "Not reported", VERSION]),
        ("hostile", ["Unknown", "&lt;script&gt;"]),
    ],
)
def test_the_page_shows_what_is_running(
    client: FlaskClient, ctl: FakeCtl, state: str, there: list[str]
) -> None:
    STATES[state](ctl)
    shown = page(client)
    plain = re.sub(r"\s+", " ", re.sub(r"<br>|</?span[^>]*>|<wbr>", "", shown))
    assert [text for text in there if text not in plain and text not in shown] == []
    assert "<script>alert" not in shown
    assert sorted(ctl.words()) == ["status --json", "version --json"]


@pytest.mark.parametrize("state", ["deactivating", "reloading", "failed", "active", "odd"])
def test_the_state_of_the_gateway_is_shown_as_on_the_start_page(
    client: FlaskClient, ctl: FakeCtl, state: str
) -> None:
    pill = re.compile(
        r">Gateway</(?:h2|dt)>.*?(<span class=\"pill.*?</span> \w+</span>)", re.DOTALL
    )
    ctl.answer("status --json", {"agent": {"active_state": state}})
    here, there = pill.search(page(client)), pill.search(page(client, "/app/dashboard"))
    assert here
    assert there
    assert here[1] == there[1]


def test_the_page_links_to_the_other_pages_and_has_help(
    client: FlaskClient, device: Device
) -> None:
    device.put("/etc/hostname", "kitchen\n")
    shown = page(client)
    for address in (
        *("/app/notifications", "/app/voice", "/app/update", "/app/system/diagnostics"),
        "/app/system#help",
    ):
        assert f'href="{address}"' in shown
    assert shown.count('id="help"') == 1
    helped = shown.partition('id="help"')[2]
    for text in ("http://localhost", "kitchen.local", "8088", "8089", "platformctl doctor"):
        assert text in helped


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_server_writes_the_theme_into_the_page(client: FlaskClient, theme: str) -> None:
    assert "data-theme" not in root_of(client)
    answer = client.post("/preferences", data={"theme": theme, "language": "auto"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/app/system")
    assert f' data-theme="{theme}"' in root_of(client)
    shown = page(client)
    assert re.search(rf'name="theme" value="{theme}" checked', shown)
    assert f'<meta name="color-scheme" content="{theme}">' in shown
    assert shown.count('name="theme-color"') == 1
    client.post("/preferences", data={"theme": "auto"})
    assert "data-theme" not in root_of(client)
    assert page(client).count('name="theme-color"') == 2


def test_a_choice_is_kept_in_a_cookie_that_scripts_cannot_read(client: FlaskClient) -> None:
    answer = client.post("/preferences", data={"theme": "dark", "language": "de"})
    cookies = [
        re.sub("Expires=[^;]+; ", "", cookie) for cookie in answer.headers.getlist("Set-Cookie")
    ]
    kept = "Max-Age=31536000; HttpOnly; Path=/; SameSite=Lax"
    assert cookies == [f"platform-theme=dark; {kept}", f"platform-language=de; {kept}"]


@pytest.mark.parametrize(
    "value",
    ["Dark", "auto", "", '"><script>', "dark light", "de", "dark\t", "%64ark", "x" * 5000, "ü"],
    ids=ascii,
)
def test_an_unknown_theme_is_ignored(client: FlaskClient, value: str) -> None:
    answer = client.post("/preferences", data={"theme": value})
    assert answer.status_code == 302
    assert [c for c in answer.headers.getlist("Set-Cookie") if "Max-Age=0" not in c] == []
    cookie = {"Cookie": f"platform-theme={value}".encode().decode("latin-1")}
    assert '<html lang="en">\n' in client.get("/app/system", headers=cookie).text
