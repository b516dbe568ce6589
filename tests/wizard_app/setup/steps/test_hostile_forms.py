"""Forms with nonsense or attacks: each step answers them properly."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote_from_bytes

import html5lib
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.http_tables import URLENCODED, assert_common_headers
from tests.wizard_app.conftest import MakeWizard
from wizard_app.setup.steps import STEPS

STEP_PAGES = [f"/wizard/{step.slug}" for step in STEPS]


@pytest.fixture
def client(wizard: MakeWizard) -> FlaskClient:
    """A client of a wizard that cannot fetch keys from anywhere."""
    return wizard(WIZARD_CODE_HOST="http://127.0.0.1:1")


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
    "not UTF-8": b"\xff\xfe\xc0\xae",
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
    """The names of the fields in the form of a page."""
    page = client.get(path).text
    names = re.findall(r'<(?:input|textarea|select|button)\b[^>]* name="([^"]+)"', page)
    return sorted(set(names) - {"language", "theme"})


# Every value is sent in all fields at once; these are also sent in each field alone.
EACH_ALONE = ("NUL", "markup", "other script", "not UTF-8", "surrogate", "deep")


@pytest.mark.parametrize("path", STEP_PAGES)
def test_http_14_no_value_of_a_field_becomes_markup(
    client: FlaskClient, state_file: Path, path: str
) -> None:
    fields = fields_of(client, path)
    assert "revision" in fields
    for name, value in HOSTILE.items():
        body = "&".join(f"{field}={quote_from_bytes(value)}" for field in fields)
        page = send(client, path, body)
        if name in ("markup", "not UTF-8", "surrogate") and page.status_code != 302:
            html5lib.HTMLParser(strict=True).parse(page.text)
    for name in EACH_ALONE:
        for field in fields:
            send(client, path, f"{field}={quote_from_bytes(HOSTILE[name])}")
    after = client.get(path)
    assert after.status_code == 200
    assert_no_markup(after.text)
    if state_file.exists():
        assert json.loads(state_file.read_bytes())["version"] == 2


def send(client: FlaskClient, path: str, body: str) -> TestResponse:
    """Send a hostile form to a step; it must be answered like any form."""
    answer = client.post(path, data=body, content_type=URLENCODED)
    assert answer.status_code in (200, 302, 409, 413, 422), body[:80]
    assert_common_headers(answer)
    assert "Set-Cookie" not in answer.headers
    assert_no_markup(answer.text)
    return answer


def assert_no_markup(page: str) -> None:
    assert "<script>alert" not in page
    assert ">49<" not in page
