"""What all responses of both apps have in common."""

from __future__ import annotations

import io
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import html5lib
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

import pwa_app.app
import wizard_app.app
from dev.distributions import ROOT
from platform_common.errors import WrongUsageError
from pwa_app.settings import PwaSettings
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.http_tables import METHODS, URLENCODED, addresses, assert_common_headers
from tests.support.trees import tree
from wizard_app.setup.settings import WizardSettings
from wizard_app.setup.steps import STEPS

CANARY = "canary-4711"
TOKEN = "5aa5" * 16


class App(NamedTuple):
    """One of our apps.

    `values` replace the variables of routes, `pages` are where a page may redirect, and `statuses`
    are the statuses of pages here; the first request may create the files in `made`.
    """

    make: Callable[[Mapping[str, str]], Flask]
    root: str
    values: tuple[str, ...]
    pages: str
    statuses: frozenset[int] = frozenset((200, 302))
    made: frozenset[str] = frozenset()


DASHBOARD = App(
    lambda environment: pwa_app.app.create_app(PwaSettings.from_env(environment)),
    "/app",
    ("openai",),
    r"/app(/[a-z-]+)*(\?[a-z=]+)?",
    # Its control CLI fails, and it creates the key pair for push at first use.
    frozenset((200, 204, 302, 405)),
    frozenset({"var", "lib", "platform", "vapid.pem", "calls.jsonl"}),
)
# It asks for no token here.
WIZARD = App(
    lambda environment: wizard_app.app.create_app(WizardSettings.from_env(environment)),
    "/wizard",
    tuple(step.slug for step in STEPS),
    r"/chat|/wizard(/[a-z-]+)?(\?return=review)?",
)


class Site:
    """One of the apps, on the device in `folder`."""

    def __init__(self, app: App, folder: Path) -> None:
        # The stand-in for platformctl is in a folder of its own, which `tree` does not read.
        self.app, self.folder, self.ctl = app, folder / "site", FakeCtl(folder / "ctl")
        self.device = Device(self.folder / "device")
        self.device.root.mkdir(parents=True)
        self.client = self.make()
        self.routes = addresses(self.client.application, app.values)
        self.readable = [path for path, methods in self.routes.items() if "GET" in methods]
        self.changing = [path for path, methods in self.routes.items() if "POST" in methods]

    def make(self, **environment: str) -> FlaskClient:
        """Create a client of a new instance of the app."""
        own = {"PLATFORM_ROOT": str(self.device.root), "WIZARD_NO_TOKEN": "1"}
        own["WIZARD_DEV_OUT"] = str(self.folder / "dev-out")
        return self.app.make(self.ctl.environment | own | environment).test_client()


@pytest.fixture(params=[DASHBOARD, WIZARD], ids=["dashboard", "wizard"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    """Each of the two apps in turn."""
    return Site(request.param, tmp_path)


@pytest.fixture
def client(site: Site) -> FlaskClient:
    """A client of each of the two apps in turn."""
    return site.client


def failing(**_: object) -> str:
    """A view with a bug, whose error message contains what was sent."""
    raise RuntimeError(f"{CANARY}\r\n\x1b[31m[2026] forged line")


def error_answers(client: FlaskClient) -> Iterator[tuple[int, TestResponse]]:
    """One response for every kind of refusal that an app as a whole has."""
    app = client.application
    foreign = {"Origin": "http://evil.example"}
    yield 403, client.post("/preferences", headers=foreign)
    yield 404, client.get(f"/{CANARY}")
    yield 404, client.get(f"/static/{CANARY}.css")
    yield 405, client.delete("/healthz")
    yield 413, client.post("/preferences", data={"theme": CANARY * 40_000})
    yield 421, client.get("/", headers={"Host": "evil.example"})
    yield 421, client.get("/healthz", headers={"Host": f"{CANARY}/"})
    yield 421, client.get("/static/style.css", headers={"Host": ""})
    yield 503, client.get("/", environ_overrides={"wsgi.multiprocess": True})
    app.view_functions["healthz"] = failing
    yield 500, client.get(f"/healthz?{CANARY}")


def test_every_step_and_page_of_the_wizard_is_among_the_routes(tmp_path: Path) -> None:
    wizard = Site(WIZARD, tmp_path)
    steps = {f"/wizard/{step.slug}" for step in STEPS}
    assert {*steps, "/wizard", "/wizard/review", "/wizard/done", "/"} <= set(wizard.readable)
    assert {*steps, "/preferences"} <= set(wizard.changing)


@pytest.mark.parametrize("method", METHODS)
def test_http_06_a_method_that_a_route_does_not_accept_is_405_with_allow(
    site: Site, method: str
) -> None:
    for path, methods in site.routes.items():
        if method in methods:
            continue
        answer = site.client.open(path, method=method, headers={"X-Probe": CANARY})
        assert answer.status_code == 405, path
        assert set(answer.allow) == methods, path
        assert CANARY not in answer.text
        assert_common_headers(answer)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_http_13_and_16_every_response_has_the_headers(site: Site, method: str) -> None:
    for path in site.readable:
        answer = site.client.open(path, method=method)
        assert answer.status_code in site.app.statuses, path
        assert_common_headers(answer)
        kind = answer.headers["Content-Type"]
        # Text states its encoding; JSON has only one.
        assert "charset=utf-8" in kind or not kind.startswith(("text/", "image/svg")), path


def test_http_16_and_18_error_responses_have_the_headers_and_are_valid_pages(
    client: FlaskClient,
) -> None:
    for status, answer in error_answers(client):
        assert answer.status_code == status
        assert answer.content_type == "text/html; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"
        assert_common_headers(answer)
        html5lib.HTMLParser(strict=True).parse(answer.text)
        assert CANARY not in answer.text
        assert "Traceback" not in answer.text
        assert f"Status {status}" in answer.text


def test_http_05_errors_are_shown_to_visitors_with_a_session(tmp_path: Path) -> None:
    locked = Site(WIZARD, tmp_path).make(WIZARD_NO_TOKEN="0", WIZARD_TOKEN=TOKEN)
    locked.get("/", headers={"Authorization": f"Bearer {TOKEN}"})
    for status, answer in error_answers(locked):
        assert answer.status_code == status
        assert TOKEN not in answer.text
        assert_common_headers(answer)


def test_http_18_and_leak_02_a_failing_view_gives_an_error_page_and_one_log_line(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    app = site.client.application
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        app.view_functions[rule.endpoint] = failing
        value = "style.css" if rule.endpoint == "static" else site.app.values[0]
        answer = site.client.open(
            f"{re.sub(r'<[^>]+>', value, rule.rule)}?q={CANARY}",
            method="POST" if "POST" in (rule.methods or ()) else "GET",
            data={"api_key": CANARY},
            headers={"User-Agent": f"{CANARY} \x1b[31m", "Cookie": f"c={CANARY}"},
        )
        app.view_functions[rule.endpoint] = view
        (record,) = caplog.records
        assert record.exc_info is None
        _assert_reported_without_the_request(answer, record.getMessage())
        caplog.clear()
        # The app still answers the next request.
        assert site.client.get("/nowhere").status_code == 404


def _assert_reported_without_the_request(answer: TestResponse, said: str) -> None:
    """A failure is a page and a log line with the same number, and without what was sent."""
    assert answer.status_code == 500
    (number,) = re.findall(r"<code>([0-9a-f]{8})</code>", answer.text)
    for words in (number, "RuntimeError", "failing"):
        assert words in said
    for shown in (said, answer.text):
        assert CANARY not in shown
        assert "\x1b" not in shown
    assert len(said.splitlines()) == 1


def test_http_18_if_the_error_page_fails_there_is_still_a_page(
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


def test_http_19_debug_mode_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASK_DEBUG", "1")
    with pytest.raises(WrongUsageError, match="debug"):
        site.make()


def test_key_17_more_than_one_process_is_reported_on_every_route(site: Site) -> None:
    for path in site.readable:
        answer = site.client.get(path, environ_overrides={"wsgi.multiprocess": True})
        assert answer.status_code == 503
        assert "one worker" in answer.text


def test_http_07_the_page_for_a_foreign_host_name_says_what_to_set_and_nothing_about_the_device(
    site: Site,
) -> None:
    site.device.put("/etc/hostname", f"{CANARY}\n")
    client = site.make(PLATFORM_ALLOWED_HOSTS="dash.example.org")
    assert CANARY in client.get("/nowhere").text
    assert client.get("/healthz", headers={"Host": "dash.example.org"}).status_code == 200
    answer = client.get("/", headers={"Host": "www.example.org:8443"})
    assert answer.status_code == 421
    assert "<code>PLATFORM_ALLOWED_HOSTS=www.example.org</code>" in answer.text
    assert 'href="/"' not in answer.text
    assert CANARY not in answer.text


def test_http_17_pages_are_not_cached(site: Site) -> None:
    files = ("/static/", "/healthz", "/sw.js", "/manifest.webmanifest", "/offline")
    for path in site.readable:
        if not path.startswith(files):
            assert site.client.get(path).headers["Cache-Control"] == "no-store", path
    for path in site.changing:
        assert site.client.post(path).headers["Cache-Control"] == "no-store", path


def test_http_17_only_an_address_with_the_digest_of_its_content_is_cached_forever(
    client: FlaskClient,
) -> None:
    found = re.findall(r'"(/static/[^"]+)"', client.get("/", follow_redirects=True).text)
    assert {address.partition("?")[0] for address in found} >= {
        *("/static/style.css", "/static/app.js")
    }
    for address in found:
        assert "immutable" in client.get(address).headers["Cache-Control"]
        assert client.get(address + "x").headers["Cache-Control"] == "no-cache"


# The headers of a request that a page of another site makes.
FOREIGN: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://localhost"},
    {"Origin": "http://localhost:8090"},
]
# The headers of requests from our own pages, and from a client that is not a browser.
OWN: list[dict[str, str]] = [{}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}]
FORM = {"hostname": "a", "timezone": "UTC", "provider": "openai", "api_key": CANARY}


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_http_09_and_10_another_site_can_change_nothing(
    site: Site, headers: dict[str, str]
) -> None:
    before = tree(site.folder)
    for path in site.changing:
        answer = site.client.post(path, data=FORM, headers=headers)
        assert answer.status_code == 403, path
        assert "another site" in answer.text
        assert_common_headers(answer)
    assert tree(site.folder) == before


@pytest.mark.parametrize("headers", OWN, ids=str)
def test_http_11_our_own_pages_and_clients_that_are_no_browsers_are_served(
    site: Site, headers: dict[str, str]
) -> None:
    for path in site.changing:
        answer = site.client.post(path, headers=headers)
        assert answer.status_code in (200, 302, 400, 404, 415, 422), path


def test_http_12_a_get_changes_nothing(site: Site) -> None:
    site.device.put("/etc/platform/active-profile", "openclaw\n")
    site.client.post("/wizard/system", data={"hostname": "a", "timezone": "UTC"})
    before = tree(site.folder)
    for path in site.readable:
        site.client.get(path)
        for method in ("GET", "HEAD"):
            site.client.open(
                f"{path}?return=review&skip=1&choice=quick&api_key={CANARY}", method=method
            )
    after = tree(site.folder)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert {Path(name).name for name in changed} <= site.app.made
    assert not any(name.startswith("device/etc") for name in changed)
    assert not any("set" in call.split() for call in site.ctl.words())


FORWARDED = {
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Prefix": "/evil",
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Port": "1",
    "Forwarded": "host=evil.example;proto=https",
    "X-Original-URL": "/app/keys",
    "X-Rewrite-URL": "/app/keys",
    "X-HTTP-Method-Override": "DELETE",
}


def test_http_08_proxy_headers_of_clients_change_nothing(client: FlaskClient) -> None:
    for path in ("/", "/healthz", "/nowhere", "/wizard/review", "/static/style.css"):
        plain, told = client.get(path), client.get(path, headers=FORWARDED)
        assert (plain.status, plain.data) == (told.status, told.data)
        assert plain.headers.to_wsgi_list() == told.headers.to_wsgi_list()
    foreign = FORWARDED | {"Origin": "http://evil.example"}
    assert client.post("/preferences", headers=foreign).status_code == 403


# Addresses of another site; {} is replaced by the pages of an app.
ADDRESSES = [
    *("//evil.example", "///evil.example{}/system", "/\\evil.example", "/%5cevil.example"),
    *("/%2f%2fevil.example", "{}//evil", "{}//evil.example/", "{}/", "{}//", "{}//system"),
    *("{}/system/", "{}/../review", "{}/..%2freview", "{}/%2e%2e", "{}/%252e%252e"),
    *("{}/%2e%2e/%2e%2e/etc/passwd", "{}/System", "{}/ѕystem", "{}/ｓystem", "{}/system%00"),
    *("{}/system%0d%0aSet-Cookie:a=b", "{}/%c0%ae%c0%ae", "{}/%ff", "{}/mesh_vpn", "{}/review/"),
    *("{}/review/apply/", "{}/review/apply/again", "{}/done/", "{}/__class__", "{}/{{{{7*7}}}}"),
    *("{}/..;/review", "{}/apply", "{}/dashboard/", "{}/keys/", "{}/" + "x" * 3000, "/;evil", "/http://evil.example"),
    *("/static//style.css", "/static/../static/style.css", "/static/../wizard.js"),
    *("/static/%2e%2e/%2e%2e/etc/passwd", "/static/..%2f..%2fetc%2fpasswd"),
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_http_05_and_20_no_address_redirects_to_another_site(site: Site, method: str) -> None:
    before = tree(site.folder)
    for address in ADDRESSES:
        path = address.format(site.app.root)
        answer = site.client.open(path, method=method, data=FORM)
        # The client takes what follows two slashes as the host name.
        assert answer.status_code in ((404, 421) if method == "GET" else (404, 405, 421)), path
        assert "Location" not in answer.headers
        assert "Set-Cookie" not in answer.headers
    assert tree(site.folder) == before


def test_http_20_a_redirect_leads_to_one_of_our_pages(site: Site) -> None:
    asked = f"?return=//evil.example&next=//evil.example&token={CANARY}"
    hostile = {"return": "//evil.example", "next": "//evil.example", "skip": "1"}
    for path, methods in site.routes.items():
        for method in {"GET", "POST"} & methods:
            answer = site.client.open(path + asked, method=method, data=hostile)
            target = answer.headers.get("Location")
            assert target is None or re.fullmatch(site.app.pages, target), path


# Forms that are too large for an app: name to content type and body.
TOO_MUCH: dict[str, tuple[str, bytes]] = {
    "too-large": (URLENCODED, b"theme=" + b"x" * (256 << 10)),
    **{
        f"a MiB of {name}": (URLENCODED, f"{name}=".encode() + b"x" * (1 << 20))
        for name in ("hostname", "api_key", "ssh_keys", "credentials", "token")
    },
    "100000-fields": (URLENCODED, b"a=1&" * 100_000),
    "1001-parts": (
        "multipart/form-data; boundary=b",
        b"".join(
            b'--b\r\nContent-Disposition: form-data; name="p%d"\r\n\r\n\r\n' % number
            for number in range(1001)
        )
        + b"--b--\r\n",
    ),
    "too-large-a-file": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
        + b"x" * (256 << 10)
        + b"\r\n--b--\r\n",
    ),
}
# Pages that read no form or only JSON, or that have their own message for a form that is too large.
_NO_FORM = (
    *("/app/push/", "/app/voice/", "/chat/clear", "/wizard/another-device", "/wizard/import"),
    *("/wizard/review/apply", "/wizard/sign-out"),
)


def refusals(path: str) -> set[int]:
    """The responses to a form that is too large."""
    return {200, 302, 413, 415} if path.startswith(_NO_FORM) else {413}


@pytest.mark.parametrize(("kind", "body"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_http_03_and_04_a_form_that_is_too_large_changes_nothing(
    site: Site, kind: str, body: bytes
) -> None:
    before = tree(site.folder)
    for path in site.changing:
        answer = site.client.post(path, data=body, content_type=kind)
        assert answer.status_code in refusals(path), path
        assert "xxx" not in answer.text
        assert_common_headers(answer)
    # The voice program is called even without a form.
    assert [call for call in site.ctl.words() if "voice" not in call] == []
    assert tree(site.folder) == before


def test_http_03_a_body_of_unknown_length_is_read_to_its_limit(site: Site) -> None:
    for path in site.changing:
        for size, refused in ((1 << 10, False), (1 << 19, True)):
            answer = site.client.post(
                path,
                input_stream=io.BytesIO(b"hostname=" + b"x" * size),
                content_type=URLENCODED,
                headers={"Transfer-Encoding": "chunked"},
                environ_overrides={"wsgi.input_terminated": True},
            )
            expected = refusals(path) if refused else {200, 302, 400, 404, 415, 422}
            assert answer.status_code in expected, path


# Forms without any field that a page expects.
STRANGE: list[tuple[str, bytes]] = [
    (URLENCODED, b"a&" * 131_000),
    (URLENCODED, b"%" * 262_000),
    (URLENCODED, b"\xff=\xfe&theme=\x00"),
    (f"{URLENCODED}; charset=utf-7", b"theme=+ADw-"),
    ("multipart/form-data", b"--b\r\n"),
    ("multipart/form-data; boundary=", b"----\r\n"),
    ("multipart/form-data; boundary=b", b"--b\r\n" * 10_000),
    ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data"),
    ("multipart/form-data; boundary=b", b"\r\n" * 120_000),
    ("application/json", b'{"theme": "dark"}'),
    ("text/plain", b"theme=dark"),
    ("nonsense", b"theme=dark"),
    ("", b"theme=dark"),
]


@pytest.mark.parametrize(("kind", "body"), STRANGE, ids=range(len(STRANGE)))
def test_http_04_a_strange_form_is_answered_quickly_and_without_a_failure(
    site: Site, kind: str, body: bytes
) -> None:
    for path in site.changing:
        began = time.process_time()
        answer = site.client.post(path, data=body, content_type=kind)
        assert answer.status_code in (200, 302, 400, 404, 413, 415, 422), path
        assert "Set-Cookie" not in answer.headers
        assert_common_headers(answer)
        assert time.process_time() - began < 5


def test_http_21_health_calls_no_program_and_reveals_nothing(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    site.device.root.rmdir()
    site.ctl.program.unlink()
    before = tree(site.folder)
    for query in ("", f"?token={CANARY}"):
        answer = site.client.get(f"/healthz{query}")
        assert (answer.status_code, answer.text) == (200, "ok")
        assert answer.content_type == "text/plain; charset=utf-8"
        assert "Set-Cookie" not in answer.headers
    assert tree(site.folder) == before
    assert not caplog.records


SOURCES = [
    path
    for package in ("platform_common", "pwa_app", "wizard_app")
    for path in (ROOT / package).rglob("*.py")
]


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"render_template_string", id="http-15-templates-built-from-values"),
        pytest.param(r"\btime\.time(_ns)?\(", id="clk-02-durations-by-the-wall-clock"),
    ],
)
def test_no_module_of_the_apps_contains(pattern: str) -> None:
    assert [path for path in SOURCES if re.search(pattern, path.read_text("utf-8"))] == []
