"""What every answer of the dashboard has in common, whichever route gives it."""

from __future__ import annotations

import gzip
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path

import html5lib
import pytest
from flask import Flask
from flask.testing import FlaskClient

from dev.distributions import ROOT
from platform_common.errors import WrongUsageError
from platform_common.paths import Paths
from platform_common.web.assets import Assets
from pwa_app.app import create_app
from pwa_app.settings import PwaSettings
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.http_tables import (
    CANARY,
    FOREIGN,
    FORWARDED,
    METHODS,
    OWN,
    STRANGE,
    TOO_MUCH,
    addresses,
    assert_common_headers,
    assert_told_without_words,
    error_answers,
    failing,
)
from tests.support.trees import tree


def an_app() -> Flask:
    """A dashboard of no device, to ask for its routes."""
    paths = Paths.from_env({"PLATFORM_ROOT": "/nonexistent"})
    return create_app(PwaSettings(paths=paths, control_cli=None))


def placed(endpoint: str) -> list[str]:
    """What stands in the place of an address's variable."""
    return ["style.css" if endpoint == "static" else "openai"]


ROUTES = addresses(an_app(), placed)
ENDPOINTS = sorted(
    (rule.endpoint, re.sub(r"<[^>]+>", "openai", rule.rule), sorted(rule.methods or ()))
    for rule in an_app().url_map.iter_rules()
)
READABLE = sorted(path for path, methods in ROUTES.items() if "GET" in methods)
CHANGING = sorted(path for path, methods in ROUTES.items() if "POST" in methods)


@pytest.mark.parametrize(
    ("method", "path"),
    [(method, path) for path in ROUTES for method in METHODS if method not in ROUTES[path]],
)
def test_http_06_a_method_that_a_route_does_not_take_is_405_with_allow(
    client: FlaskClient, method: str, path: str
) -> None:
    answer = client.open(path, method=method, headers={"X-Probe": CANARY})
    assert answer.status_code == 405
    assert set(answer.allow) == ROUTES[path]
    assert CANARY not in answer.text
    assert_common_headers(answer)


@pytest.mark.parametrize("path", READABLE)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_http_13_and_16_every_answer_has_the_headers(
    client: FlaskClient, path: str, method: str
) -> None:
    answer = client.open(path, method=method)
    assert_common_headers(answer)
    kind = answer.headers["Content-Type"]
    # Text says its encoding, and JSON has but one.
    assert "charset=utf-8" in kind or not kind.startswith(("text/", "image/svg"))


def test_http_13_and_16_errors_have_them_too(client: FlaskClient) -> None:
    for status, answer in error_answers(client):
        assert answer.status_code == status
        assert answer.content_type == "text/html; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"
        assert_common_headers(answer)


def test_http_18_errors_are_valid_pages_without_what_was_sent(client: FlaskClient) -> None:
    for status, answer in error_answers(client):
        html5lib.HTMLParser(strict=True).parse(answer.text)
        assert CANARY not in answer.text
        assert "Traceback" not in answer.text
        assert f"Status {status}" in answer.text


@pytest.mark.parametrize(("endpoint", "path", "methods"), ENDPOINTS)
def test_http_18_and_leak_02_a_view_that_fails_gives_a_page_and_one_line(
    client: FlaskClient,
    caplog: pytest.LogCaptureFixture,
    endpoint: str,
    path: str,
    methods: list[str],
) -> None:
    client.application.view_functions[endpoint] = failing
    method = "POST" if "POST" in methods else "GET"
    answer = client.open(
        f"{path}?q={CANARY}",
        method=method,
        data={"a": CANARY},
        headers={"User-Agent": f"{CANARY} \x1b[31m", "Cookie": f"c={CANARY}"},
    )
    (record,) = caplog.records
    assert_told_without_words(answer, record.getMessage())
    assert record.exc_info is None
    # The next request finds an app that lives.
    assert client.get("/nowhere").status_code == 404


def test_http_18_a_page_of_errors_that_fails_itself_is_still_a_page(
    client: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> str:
        raise RuntimeError(CANARY)

    client.application.jinja_env.globals["device_name"] = broken
    answer = client.get("/nowhere")
    assert answer.status_code == 404
    assert "There is no such page" in answer.text
    assert CANARY not in answer.text + caplog.text
    assert_common_headers(answer)


def test_http_19_debug_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASK_DEBUG", "1")
    with pytest.raises(WrongUsageError, match="debug"):
        an_app()


def test_key_17_more_than_one_process_is_told_on_every_route(client: FlaskClient) -> None:
    for path in READABLE:
        answer = client.get(path, environ_overrides={"wsgi.multiprocess": True})
        assert answer.status_code == 503
        assert "one worker" in answer.text


def test_the_page_for_a_name_that_is_not_ours_says_what_to_set(client: FlaskClient) -> None:
    answer = client.get("/app/keys", headers={"Host": "dash.example.org:8443"})
    assert answer.status_code == 421
    assert "<code>PLATFORM_ALLOWED_HOSTS=dash.example.org</code>" in answer.text
    assert 'href="/"' not in answer.text


def test_http_07_a_foreign_name_learns_nothing_of_the_device(
    dashboard: Callable[..., FlaskClient], device: Device
) -> None:
    device.put("/etc/hostname", f"{CANARY}\n")
    client = dashboard()
    assert CANARY in client.get("/nowhere").text
    assert CANARY not in client.get("/", headers={"Host": "evil.example"}).text


def test_http_07_a_name_in_the_setting_is_served(dashboard: Callable[..., FlaskClient]) -> None:
    client = dashboard(PLATFORM_ALLOWED_HOSTS="dash.example.org")
    for host, status in (("dash.example.org", 200), ("www.example.org", 421)):
        assert client.get("/healthz", headers={"Host": host}).status_code == status


def test_the_page_for_another_site_names_it(client: FlaskClient) -> None:
    answer = client.post("/preferences", headers={"Sec-Fetch-Site": "cross-site"})
    assert "another site" in answer.text


@pytest.mark.parametrize("path", CHANGING)
@pytest.mark.parametrize(
    "headers",
    FOREIGN,
    ids=str,
)
def test_http_09_nothing_is_done_for_another_site(
    client: FlaskClient, ctl: FakeCtl, path: str, headers: dict[str, str]
) -> None:
    answer = client.post(path, data={"provider": "openai", "api_key": CANARY}, headers=headers)
    assert answer.status_code == 403
    assert ctl.words() == []


@pytest.mark.parametrize("path", CHANGING)
@pytest.mark.parametrize("headers", OWN, ids=str)
def test_http_11_our_own_pages_and_no_browsers_may(
    client: FlaskClient, path: str, headers: dict[str, str]
) -> None:
    assert client.post(path, headers=headers).status_code != 403


def test_http_12_a_get_changes_nothing(client: FlaskClient, device: Device, ctl: FakeCtl) -> None:
    device.put("/etc/platform/active-profile", "openclaw\n")
    before = tree(device.root)
    for path in READABLE:
        client.get(path)
        client.head(path)
    changed = {name for name, kept in tree(device.root).items() if before.get(name) != kept}
    # The key pair for push is made by the first who asks for it (spec).
    assert {name for name in changed if not name.startswith("var")} == set()
    assert {Path(name).name for name in changed} <= {"var", "lib", "platform", "vapid.pem"}
    assert not any("set" in call.split() for call in ctl.words())


def test_http_08_what_a_proxy_might_say_changes_nothing(client: FlaskClient) -> None:
    for path in ("/", "/healthz", "/nowhere", "/static/style.css"):
        plain, told = client.get(path), client.get(path, headers=FORWARDED)
        assert (plain.status_code, plain.headers.to_wsgi_list(), plain.data) == (
            told.status_code,
            told.headers.to_wsgi_list(),
            told.data,
        )
    foreign = FORWARDED | {"Origin": "http://evil.example"}
    assert client.post("/preferences", headers=foreign).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "///evil.example/app/dashboard",
        "/\\evil.example",
        "/%5cevil.example",
        "/%2f%2fevil.example",
        "/app//dashboard",
        "/app/dashboard/",
        "/app/keys/",
        "/static//style.css",
        "/static/../static/style.css",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2fetc%2fpasswd",
        "/?next=//evil.example",
        "/;evil",
        "/http://evil.example",
    ],
)
def test_http_20_no_address_leads_elsewhere(client: FlaskClient, path: str) -> None:
    answer = client.get(path)
    assert answer.location in (None, "/app/dashboard")
    # The client takes what is behind two slashes as the name of the host.
    assert answer.status_code in (302, 404, 421)


def test_redirects_are_relative(client: FlaskClient) -> None:
    for path in ROUTES:
        for method in {"GET", "POST"} & ROUTES[path]:
            target = client.open(path, method=method).headers.get("Location", "/")
            assert re.match(r"/(?!/)", target), path


@pytest.mark.parametrize("name", ["style.css", "app.js", "icon.svg"])
def test_a_static_file_is_compressed_and_kept(client: FlaskClient, name: str) -> None:
    plain = client.get(f"/static/{name}")
    small = client.get(f"/static/{name}", headers={"Accept-Encoding": "br, gzip"})
    assert gzip.decompress(small.data) == plain.data
    assert small.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert small.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert small.headers["ETag"] != plain.headers["ETag"]
    assert plain.headers["Cache-Control"] == "no-cache"


SCRIPTS = sorted([*ROOT.glob("*_app/static/*.js"), *ROOT.glob("platform_common/web/static/*.js")])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_sent_without_comments_and_blanks_and_otherwise_as_it_is(script: Path) -> None:
    own = re.sub(r"(?m)(?:^|\s)//.*$|/\*.*?\*/", "", script.read_text())
    sent = Assets([script.parent]).files[script.name].data.decode()
    assert len(sent) < len(own)
    for part in (r"\S", r"[\w$]+", r'"[^"]*"|`[^`]*`'):
        assert re.findall(part, sent) == re.findall(part, own)


def test_all_scripts_and_styles_together_are_small() -> None:
    files = {name: file for one in SCRIPTS for name, file in Assets([one.parent]).files.items()}
    for suffix, limit in ((".js", 8 << 10), (".css", 14_000)):
        sizes = {name: len(file.compressed or b"") for name, file in files.items()}
        assert sum(size for name, size in sizes.items() if name.endswith(suffix)) <= limit, sizes


def test_a_static_file_that_is_known_is_not_sent_again(client: FlaskClient) -> None:
    first = client.get("/static/style.css", headers={"Accept-Encoding": "gzip"})
    asked = {"If-None-Match": first.headers["ETag"], "Accept-Encoding": "gzip"}
    again = client.get("/static/style.css", headers=asked)
    assert (again.status_code, again.data) == (304, b"")
    assert_common_headers(again)


def test_http_17_only_an_address_that_tells_the_bytes_is_kept_for_ever(
    client: FlaskClient,
) -> None:
    page = client.get("/nowhere").text
    addresses = re.findall(r'"(/static/[^"]+)"', page)
    assert addresses
    for address in addresses:
        assert "immutable" in client.get(address).headers["Cache-Control"]
        assert client.get(address + "x").headers["Cache-Control"] == "no-cache"


def test_http_17_pages_are_stored_nowhere(client: FlaskClient) -> None:
    for path in READABLE:
        if path.startswith("/app/") or path == "/":
            assert client.get(path).headers["Cache-Control"] == "no-store", path


@pytest.mark.parametrize(("kind", "body"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_http_03_and_04_a_form_that_is_too_much_is_413(
    client: FlaskClient, kind: str, body: bytes
) -> None:
    assert client.post("/preferences", data=body, content_type=kind).status_code == 413


@pytest.mark.parametrize(("kind", "body"), STRANGE, ids=range(len(STRANGE)))
def test_http_04_a_strange_form_is_no_failure_and_quickly_done(
    client: FlaskClient, kind: str, body: bytes
) -> None:
    began = time.monotonic()
    answer = client.post("/preferences", data=body, content_type=kind)
    assert answer.status_code in (302, 400, 413)
    assert "Set-Cookie" not in answer.headers
    assert time.monotonic() - began < 5


def test_http_21_health_asks_nobody_and_says_nothing(
    client: FlaskClient, ctl: FakeCtl, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    device.root.rmdir()
    ctl.program.unlink()
    answer = client.get("/healthz")
    assert (answer.status_code, answer.text) == (200, "ok")
    assert answer.content_type == "text/plain; charset=utf-8"
    assert not caplog.records


def test_http_15_no_template_is_made_from_a_value() -> None:
    root = Path(__file__).resolve().parents[2]
    for package in ("pwa_app", "platform_common"):
        for path in (root / package).rglob("*.py"):
            assert "render_template_string" not in path.read_text("utf-8"), path


def test_clk_02_no_interval_is_measured_with_a_clock_that_is_set() -> None:
    root = Path(__file__).resolve().parents[2]
    for package in ("pwa_app", "platform_common"):
        for path in (root / package).rglob("*.py"):
            assert not re.search(r"\btime\.time(_ns)?\(", path.read_text("utf-8")), path
