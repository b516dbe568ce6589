"""Forms that are too much, hold nonsense, or mean harm: each step answers them as it should."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path
from urllib.parse import quote_from_bytes

import html5lib
import pytest
from flask.testing import FlaskClient

from tests.support.http_tables import STRANGE, TOO_MUCH, URLENCODED, assert_common_headers
from tests.support.trees import tree
from tests.support.wizard_routes import CHANGING, STEP_PAGES
from tests.wizard_app.conftest import MakeWizard


@pytest.fixture
def client(wizard: MakeWizard) -> FlaskClient:
    """A client of a wizard that can fetch no keys anywhere."""
    return wizard(WIZARD_CODE_HOST="http://127.0.0.1:1")


@pytest.mark.parametrize("path", CHANGING)
@pytest.mark.parametrize(("kind", "body"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_http_03_and_04_a_form_that_is_too_much_changes_nothing(
    client: FlaskClient, out: Path, path: str, kind: str, body: bytes
) -> None:
    before = tree(out)
    answer = client.post(path, data=body, content_type=kind)
    assert answer.status_code in refusals(path)
    assert_common_headers(answer)
    assert tree(out) == before


def refusals(path: str) -> set[int]:
    """How a form that is too large is answered: other pages have words of their own for it."""
    return {413} if path in STEP_PAGES or path == "/preferences" else {200, 413}


@pytest.mark.parametrize("path", CHANGING)
def test_http_03_a_field_of_a_mebibyte_is_refused(
    client: FlaskClient, out: Path, path: str
) -> None:
    for name in ("hostname", "api_key", "ssh_keys", "credentials", "token"):
        answer = client.post(path, data={name: "x" * (1 << 20)})
        assert answer.status_code in refusals(path)
        assert "xxx" not in answer.text
    assert not tree(out)


@pytest.mark.parametrize("path", CHANGING)
def test_http_03_a_body_of_unknown_length_is_read_to_its_limit(
    client: FlaskClient, path: str
) -> None:
    for size, refused in ((1 << 10, False), (1 << 19, True)):
        answer = client.post(
            path,
            input_stream=io.BytesIO(b"hostname=" + b"x" * size),
            content_type=URLENCODED,
            headers={"Transfer-Encoding": "chunked"},
            environ_overrides={"wsgi.input_terminated": True},
        )
        assert answer.status_code in (refusals(path) if refused else {200, 302, 400, 422})


@pytest.mark.parametrize("path", CHANGING)
def test_http_04_a_strange_form_is_no_failure_and_quickly_done(
    client: FlaskClient, state_file: Path, path: str
) -> None:
    for number, (kind, body) in enumerate(STRANGE):
        began = time.monotonic()
        answer = client.post(path, data=body, content_type=kind)
        assert answer.status_code in (200, 302, 400, 413, 415, 422), number
        assert_common_headers(answer)
        assert time.monotonic() - began < 5
    if state_file.exists():
        assert json.loads(state_file.read_bytes())["version"] == 2


@pytest.mark.parametrize("path", STEP_PAGES)
def test_http_04_ten_thousand_fields_are_no_failure(
    client: FlaskClient, state_file: Path, path: str
) -> None:
    fields = fields_of(client, path)
    for body in (
        "&".join(f"f{number}=1" for number in range(10_000)),
        "&".join(f"{fields[number % len(fields)]}={number}" for number in range(10_000)),
    ):
        began = time.monotonic()
        answer = client.post(path, data=body, content_type=URLENCODED)
        assert answer.status_code in (200, 302, 413, 422)
        assert time.monotonic() - began < 5
    assert not state_file.exists() or state_file.stat().st_size < 1 << 18


HOSTILE: dict[str, bytes] = {
    "NUL": b"a\0b",
    "line": b"a\r\nSet-Cookie: a=b\r\n\r\n<p>",
    "blank": b" \t\n\x0b\x0c\xc2\xa0\xe2\x80\xa8 ",
    "markup": b"\"'><script>alert(1)</script><!--",
    "template": b"{{7*7}}{% raw %}${7*7}#{7*7}",
    "format": b"%s %n {0} {name} {why.__class__}",
    "folder": b"../../../../etc/passwd",
    "option": b"-oProxyCommand=touch /tmp/x",
    "other script": "\u0440l\u0430tform \uff10\u0661 \u202edirection".encode(),
    "no UTF-8": b"\xff\xfe\xc0\xae",
    "surrogate": b"\xed\xa0\x80",
    "escape": b"\x1b[2J\x1b]0;x\x07",
    "number": b"9" * 5000,
    "long": b"x" * 200_000,
    "deep": b"[" * 100_000,
    "deep with a name": b'{"TunnelName":' * 15_000,
    "not a number": b'{"TunnelName": NaN, "TunnelID": 1e999}',
    "key of another": b"__proto__",
}


def fields_of(client: FlaskClient, path: str) -> list[str]:
    """The names in the form of a page."""
    page = client.get(path).text
    names = re.findall(r'<(?:input|textarea|select|button)\b[^>]* name="([^"]+)"', page)
    return sorted(set(names) - {"language", "theme"})


# Every value goes into all fields at once, and these into each alone, too.
EACH_ALONE = ("NUL", "markup", "other script", "no UTF-8", "surrogate", "deep")


@pytest.mark.parametrize("path", STEP_PAGES)
def test_http_14_no_value_of_a_field_is_a_failure_or_markup_of_the_page(
    client: FlaskClient, state_file: Path, path: str
) -> None:
    fields = fields_of(client, path)
    assert "revision" in fields
    for value in map(quote_from_bytes, HOSTILE.values()):
        send(client, path, "&".join(f"{field}={value}" for field in fields))
    for name in EACH_ALONE:
        for field in fields:
            send(client, path, f"{field}={quote_from_bytes(HOSTILE[name])}")
    after = client.get(path)
    assert after.status_code == 200
    assert_no_markup(after.text)
    if state_file.exists():
        assert json.loads(state_file.read_bytes())["version"] == 2


def send(client: FlaskClient, path: str, body: str) -> None:
    """Send a hostile form to a step, which is answered as any form is."""
    answer = client.post(path, data=body, content_type=URLENCODED)
    assert answer.status_code in (200, 302, 409, 413, 422), body[:80]
    assert_common_headers(answer)
    assert "Set-Cookie" not in answer.headers
    assert_no_markup(answer.text)


def assert_no_markup(page: str) -> None:
    assert "<script>alert" not in page
    assert ">49<" not in page


@pytest.mark.parametrize("path", STEP_PAGES)
def test_http_14_an_error_page_with_hostile_values_is_valid(client: FlaskClient, path: str) -> None:
    fields = fields_of(client, path)
    for name in ("markup", "no UTF-8", "surrogate"):
        value = quote_from_bytes(HOSTILE[name])
        body = "&".join(f"{field}={value}" for field in fields)
        page = client.post(path, data=body, content_type=URLENCODED)
        if page.status_code != 302:
            html5lib.HTMLParser(strict=True).parse(page.text)
