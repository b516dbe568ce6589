"""The language of a page: chosen by the browser's preferences or by the owner."""

from __future__ import annotations

import time

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.control_cli import FakeCtl

PAGE = "/offline"


def get(client: FlaskClient, wish: str | None = None, path: str = PAGE) -> TestResponse:
    """The page for a browser with these preferences, or without any."""
    return client.get(path, headers=None if wish is None else {"Accept-Language": wish})


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (None, "en"),
        ("", "en"),
        ("de", "de"),
        ("DE", "de"),
        ("de-CH", "de"),
        ("de-Latn-CH-1996", "de"),
        # The highest preference counts, even if another language matches more exactly.
        ("de-CH, en;q=0.5", "de"),
        ("en-GB, de;q=0.9", "en"),
        ("de;q=0.1, en", "en"),
        ("fr, it;q=0.9, de;q=0.8, en;q=0.7", "de"),
        ("fr-CH, fr", "en"),
        ("*", "en"),
        ("fr, *;q=0.5", "en"),
        ("de;q=0", "en"),
        ("de;q=0, *", "en"),
        ("deu", "en"),
        ("d", "en"),
        ("-de", "en"),
        (";;;=,q=,\t,*-*", "en"),
        ("de;q=nonsense, en;q=0.1", "en"),
        ("de\x00", "en"),
        ("../../de", "en"),
    ],
)
def test_a_page_is_in_the_language_that_the_browser_prefers(
    client: FlaskClient, wish: str | None, code: str
) -> None:
    answer = get(client, wish)
    assert answer.status_code == 200
    assert f'<html lang="{code}"' in answer.text
    assert answer.headers["Content-Language"] == code


@pytest.mark.parametrize(
    "wish", ["x" * 10_000, "de," * 3_400, "-" * 10_000, "de;" * 3_400, "q=0." * 2_500, " ," * 5_000]
)
def test_a_header_of_ten_kilobytes_is_read_quickly(client: FlaskClient, wish: str) -> None:
    get(client)
    began = time.monotonic()
    assert get(client, wish).status_code == 200
    assert time.monotonic() - began < 20


def test_the_owners_choice_overrides_the_browser_until_it_is_reset(client: FlaskClient) -> None:
    for chosen, wish, code in (("de", "en", "de"), ("en", "de", "en"), ("auto", "de", "de")):
        client.post("/preferences", data={"language": chosen})
        assert get(client, wish).headers["Content-Language"] == code


@pytest.mark.parametrize(
    "value",
    ["fr", "DE", "de ", "de\t", "../de", "", "auto", '"><script>', "x" * 5_000, "ü"],
    ids=ascii,
)
def test_an_invalid_choice_is_ignored(client: FlaskClient, value: str) -> None:
    cookie = {"Cookie": f"platform-language={value}".encode().decode("latin-1")}
    answer = client.get(PAGE, headers=cookie | {"Accept-Language": "de"})
    assert '<html lang="de">' in answer.text
    chosen = client.post("/preferences", data={"language": value})
    assert chosen.status_code == 302
    assert [c for c in chosen.headers.getlist("Set-Cookie") if "Max-Age=0" not in c] == []
    assert get(client, "en").headers["Content-Language"] == "en"


@pytest.mark.parametrize(
    "path", ["app/dashboard", "offline", "manifest.webmanifest", "sw.js", "no"]
)
def test_responses_name_their_language_and_variants(client: FlaskClient, path: str) -> None:
    answer = get(client, "de", f"/{path}")
    assert answer.status_code == (404 if path == "no" else 200)
    assert answer.headers.getlist("Content-Language") == ["de"]
    assert {"Accept-Language", "Cookie"} <= set(answer.vary)


@pytest.mark.parametrize("path", ["/healthz", "/", "/static/style.css", "/app/push/vapid-public"])
def test_responses_without_a_language_name_none(client: FlaskClient, path: str) -> None:
    answer = get(client, "de", path)
    assert answer.status_code < 400
    assert "Content-Language" not in answer.headers
    assert "Accept-Language" not in answer.headers.get("Vary", "")


def test_text_of_the_control_cli_is_marked_as_english(client: FlaskClient, ctl: FakeCtl) -> None:
    ctl.answer("limits --json", status=1, errors="error: <b>no such file</b>\n")
    why = "&lt;b&gt;no such file&lt;/b&gt;"
    german = get(client, "de", "/app/dashboard").text
    assert f'limits --json ist fehlgeschlagen: <span lang="en">{why}</span>' in german
    assert f"limits --json failed: {why}" in get(client, "en", "/app/dashboard").text


def test_a_message_is_in_the_language_of_its_reader(client: FlaskClient) -> None:
    german, english = "Anbieter und Schlüssel sind beide nötig.", "Provider and key are both"
    for sent, read, said in (("en", "de", german), ("de", "en", english)):
        client.post("/app/keys/rotate", data={}, headers={"Accept-Language": sent})
        assert said in get(client, read, "/app/keys").text


def test_a_reason_inside_a_message_is_translated_with_it(client: FlaskClient, ctl: FakeCtl) -> None:
    ctl.answer("voice check --json", status=1, errors="error: no device\n")
    client.post("/app/voice/check")
    assert (
        "Das Mikrofon konnte nicht geprüft werden: voice check --json ist fehlgeschlagen: "
        '<span lang="en">no device</span>'
    ) in get(client, "de", "/app/voice").text
