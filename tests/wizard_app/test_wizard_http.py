"""What every answer of the wizard has in common, whichever step or page gives it."""

from __future__ import annotations

import re
from pathlib import Path

import html5lib
import pytest
from flask.testing import FlaskClient

from tests.support.devices import Device
from tests.support.http_tables import (
    CANARY,
    FOREIGN,
    FORWARDED,
    METHODS,
    OWN,
    assert_common_headers,
    assert_told_without_words,
    error_answers,
    failing,
)
from tests.support.trees import tree
from tests.support.wizard_routes import (
    CHANGING,
    ENDPOINTS,
    PUBLIC,
    READABLE,
    ROUTES,
    STEP_PAGES,
)
from tests.wizard_app.conftest import MakeWizard

TOKEN = "5aa5" * 16


def test_every_step_and_page_is_among_the_routes() -> None:
    assert {*STEP_PAGES, "/wizard", "/wizard/review", "/wizard/done", "/"} <= set(READABLE)
    assert {*STEP_PAGES, "/preferences"} <= set(CHANGING)


@pytest.mark.parametrize("method", METHODS)
def test_http_06_a_method_that_a_route_does_not_take_is_405_with_allow(
    client: FlaskClient, method: str
) -> None:
    for path, methods in ROUTES.items():
        if method in methods:
            continue
        answer = client.open(path, method=method, headers={"X-Probe": CANARY})
        assert answer.status_code == 405, path
        assert set(answer.allow) == methods, path
        assert CANARY not in answer.text
        assert_common_headers(answer)


@pytest.mark.parametrize("path", READABLE)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_http_16_every_answer_has_the_headers(client: FlaskClient, path: str, method: str) -> None:
    answer = client.open(path, method=method)
    assert answer.status_code in (200, 302)
    assert_common_headers(answer)
    kind = answer.headers["Content-Type"]
    # Text says its encoding, and JSON has but one.
    assert "charset=utf-8" in kind or not kind.startswith(("text/", "image/svg"))


def test_http_16_and_18_errors_have_them_too_and_are_valid_pages(client: FlaskClient) -> None:
    for status, answer in error_answers(client):
        assert answer.status_code == status
        assert answer.content_type == "text/html; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"
        assert_common_headers(answer)
        html5lib.HTMLParser(strict=True).parse(answer.text)
        assert CANARY not in answer.text
        assert "Traceback" not in answer.text
        assert f"Status {status}" in answer.text


@pytest.mark.parametrize(
    ("endpoint", "path", "methods"), ENDPOINTS, ids=lambda value: str(value).replace("/", "-")
)
def test_http_18_a_view_that_fails_gives_a_page_and_one_line(
    client: FlaskClient,
    caplog: pytest.LogCaptureFixture,
    endpoint: str,
    path: str,
    methods: list[str],
) -> None:
    client.application.view_functions[endpoint] = failing
    answer = client.open(
        f"{path}?q={CANARY}",
        method="POST" if "POST" in methods else "GET",
        data={"api_key": CANARY},
        headers={"User-Agent": f"{CANARY} \x1b[31m", "Cookie": f"c={CANARY}"},
    )
    (record,) = caplog.records
    assert_told_without_words(answer, record.getMessage())
    assert record.exc_info is None
    # The next request finds an app that lives.
    assert client.get("/nowhere").status_code == 404


def test_http_17_pages_are_stored_nowhere(client: FlaskClient) -> None:
    for path in READABLE:
        if not path.startswith(("/static/", "/healthz")):
            assert client.get(path).headers["Cache-Control"] == "no-store", path
    for path in CHANGING:
        assert client.post(path).headers["Cache-Control"] == "no-store", path


def test_http_17_only_an_address_that_tells_the_bytes_is_kept_for_ever(
    client: FlaskClient,
) -> None:
    addresses_ = set(re.findall(r'"(/static/[^"]+)"', client.get(STEP_PAGES[0]).text))
    assert {address.partition("?")[0] for address in addresses_} >= {
        *("/static/style.css", "/static/app.js", "/static/wizard.js")
    }
    for address in addresses_:
        assert "immutable" in client.get(address).headers["Cache-Control"]
        assert client.get(address + "x").headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("path", CHANGING)
def test_http_09_and_10_nothing_is_done_for_another_site(
    client: FlaskClient, out: Path, path: str
) -> None:
    before = tree(out)
    for headers in FOREIGN:
        answer = client.post(path, data={"hostname": "a", "timezone": "UTC"}, headers=headers)
        assert answer.status_code == 403, headers
        assert_common_headers(answer)
    assert tree(out) == before


@pytest.mark.parametrize("path", CHANGING)
def test_http_11_our_own_pages_and_no_browsers_may(client: FlaskClient, path: str) -> None:
    for headers in OWN:
        answer = client.post(path, headers=headers)
        assert answer.status_code in (200, 302, 400, 422), headers


def test_http_12_a_get_changes_nothing(client: FlaskClient, out: Path, device: Device) -> None:
    client.post("/wizard/system", data={"hostname": "a", "timezone": "UTC"})
    before = tree(out), tree(device.root)
    for path in READABLE:
        for query in ("", "?return=review", f"?hostname={CANARY}&skip=1&choice=quick"):
            client.get(path + query)
            client.head(path + query)
    assert (tree(out), tree(device.root)) == before


def test_http_08_what_a_proxy_might_say_changes_nothing(client: FlaskClient) -> None:
    for path in ("/", "/healthz", "/nowhere", "/wizard/review", "/static/style.css"):
        plain, told = client.get(path), client.get(path, headers=FORWARDED)
        assert (plain.status_code, plain.headers.to_wsgi_list(), plain.data) == (
            told.status_code,
            told.headers.to_wsgi_list(),
            told.data,
        )
    foreign = FORWARDED | {"Origin": "http://evil.example"}
    assert client.post("/wizard/system", headers=foreign).status_code == 403


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "///evil.example/wizard/system",
        "/\\evil.example",
        "/%5cevil.example",
        "/%2f%2fevil.example",
        "/wizard//evil",
        "/wizard//evil.example/",
        "/wizard/",
        "/wizard//",
        "/wizard//system",
        "/wizard/system/",
        "/wizard/../review",
        "/wizard/..%2freview",
        "/wizard/%2e%2e",
        "/wizard/%2e%2e/%2e%2e/etc/passwd",
        "/wizard/%252e%252e",
        "/wizard/..;/review",
        "/wizard/System",
        "/wizard/ѕystem",
        "/wizard/ｓystem",
        "/wizard/system%00",
        "/wizard/system%0d%0aSet-Cookie:a=b",
        "/wizard/%c0%ae%c0%ae",
        "/wizard/%ff",
        "/wizard/mesh_vpn",
        "/wizard/review/",
        "/wizard/review/apply/",
        "/wizard/review/apply/again",
        "/wizard/done/",
        "/wizard/__class__",
        "/wizard/{{7*7}}",
        "/wizard/" + "x" * 3000,
        "/static/../wizard.js",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/;evil",
        "/http://evil.example",
    ],
)
def test_http_05_and_20_no_address_leads_elsewhere(
    client: FlaskClient, out: Path, path: str, method: str
) -> None:
    before = tree(out)
    answer = client.open(path, method=method, data={"hostname": "a", "timezone": "UTC"})
    # The client takes what is behind two slashes as the name of the host.
    assert answer.status_code in ((404, 421) if method == "GET" else (404, 405, 421))
    assert "Location" not in answer.headers
    assert "Set-Cookie" not in answer.headers
    assert tree(out) == before


def test_http_20_a_redirect_leads_to_a_page_of_ours(client: FlaskClient) -> None:
    asked = f"?return=//evil.example&next=//evil.example&token={CANARY}"
    hostile = {"return": "//evil.example", "next": "//evil.example", "skip": "1"}
    for path in ROUTES:
        for method in {"GET", "POST"} & ROUTES[path]:
            answer = client.open(path + asked, method=method, data=hostile)
            target = answer.headers.get("Location", "/wizard")
            assert re.fullmatch(r"/chat|/wizard(/[a-z-]+)?(\?return=review)?", target), path


def test_http_21_health_asks_nobody_and_says_nothing(
    client: FlaskClient, device: Device, out: Path, caplog: pytest.LogCaptureFixture
) -> None:
    device.root.rmdir()
    for query in ("", f"?token={CANARY}"):
        answer = client.get(f"/healthz{query}")
        assert (answer.status_code, answer.text) == (200, "ok")
        assert answer.content_type == "text/plain; charset=utf-8"
        assert "Set-Cookie" not in answer.headers
    assert not out.exists()
    assert not caplog.records


@pytest.fixture
def locked(wizard: MakeWizard) -> FlaskClient:
    """A client of a wizard that asks for its launch token, and has not shown it."""
    return wizard(WIZARD_NO_TOKEN="0", WIZARD_TOKEN=TOKEN)


@pytest.mark.parametrize("method", [*METHODS, "OPTIONS"])
def test_nobody_without_a_session_learns_what_is_there(
    locked: FlaskClient, out: Path, method: str
) -> None:
    before = tree(out)
    pages = set()
    for path in [*ROUTES, "/nowhere", "/wizard/nowhere", "/chat", "/wizard/review/apply"]:
        if path in PUBLIC:
            continue
        answer = locked.open(path, method=method, data={"hostname": CANARY, "timezone": "UTC"})
        assert answer.status_code == 401, path
        assert answer.headers["WWW-Authenticate"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Set-Cookie" not in answer.headers
        assert "Location" not in answer.headers
        assert "Allow" not in answer.headers
        assert_common_headers(answer)
        pages.add(answer.text)
    for page in pages:
        assert CANARY not in page
        if page:
            html5lib.HTMLParser(strict=True).parse(page)
    assert tree(out) == before


def test_http_21_and_16_health_and_files_ask_for_no_session(locked: FlaskClient) -> None:
    for path in PUBLIC:
        answer = locked.get(path)
        assert answer.status_code == 200
        assert "Set-Cookie" not in answer.headers
        assert_common_headers(answer)


WRONG_TOKENS = [
    "",
    " ",
    "0",
    "x",
    TOKEN[:-1],
    TOKEN + "0",
    TOKEN.upper(),
    f" {TOKEN}",
    f"{TOKEN} ",
    f"{TOKEN}\n",
    f"{TOKEN}\0",
    f"\0{TOKEN}",
    TOKEN.replace("a", "\u0430"),
    "\uff41" * 64,
    "é" * 64,
    "\U0001f600",
    "\u202e" + TOKEN,
    "%00",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "null",
    "9" * 5000,
    "a" * 60_000,
    "' OR 1=1",
]


@pytest.mark.parametrize("value", WRONG_TOKENS, ids=range(len(WRONG_TOKENS)))
def test_tok_05_what_is_no_token_opens_nothing_and_spends_nothing(
    locked: FlaskClient, value: str
) -> None:
    bytes_ = value.encode().replace(b"\n", b"").replace(b"\0", b"").decode("latin-1")
    answers = [
        locked.get("/", query_string={"token": value}),
        locked.get("/wizard/system", query_string={"token": [value, value]}),
        locked.get("/", query_string={"token": [value, TOKEN]}),
        locked.get("/", headers={"Authorization": f"Bearer {bytes_}x"}),
        locked.get("/", headers={"Authorization": f"Basic {bytes_}"}),
        locked.post("/wizard/system", data={"token": TOKEN}),
        locked.get("/", query_string="token=%ff%fe%ed%a0%80"),
    ]
    for answer in answers:
        assert answer.status_code == 401
        assert "Set-Cookie" not in answer.headers
        assert_common_headers(answer)
        assert "<script>alert" not in answer.text
        assert TOKEN not in answer.text
    entered = locked.get("/", query_string={"token": TOKEN})
    assert entered.status_code == 302
    assert "platform-session" in entered.headers["Set-Cookie"]


def test_tok_05_a_token_is_known_by_its_name_alone(locked: FlaskClient) -> None:
    for name in ("Token", "TOKEN", "token[]", "t%00oken", "access_token"):
        assert locked.get("/", query_string=f"{name}={TOKEN}").status_code == 401
    assert locked.get("/", headers={"Cookie": f"token={TOKEN}"}).status_code == 401
    assert locked.get("/", headers={"Cookie": f"platform-session={TOKEN}"}).status_code == 401


def test_http_05_errors_are_told_to_who_is_in(locked: FlaskClient) -> None:
    locked.get("/", headers={"Authorization": f"Bearer {TOKEN}"})
    for status, answer in error_answers(locked):
        assert answer.status_code == status
        assert TOKEN not in answer.text
        assert_common_headers(answer)
