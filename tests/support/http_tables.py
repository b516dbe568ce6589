"""What every answer of our apps is held to, and the requests that none of them may stumble over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

CANARY = "canary-4711"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "FOO")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}
# What a browser says of a request that a page of another site makes.
FOREIGN: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://localhost"},
    {"Origin": "http://localhost:8090"},
]
# What our own pages say, and who is no browser.
OWN: list[dict[str, str]] = [
    {},
    {"Origin": "http://localhost"},
    {"Sec-Fetch-Site": "same-origin"},
]
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
URLENCODED = "application/x-www-form-urlencoded"
# Forms that are more than an app reads: a name to a content type and a body.
TOO_MUCH: dict[str, tuple[str, bytes]] = {
    "too-large": (URLENCODED, b"theme=" + b"x" * (256 << 10)),
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
# Forms that hold nothing which anybody asked for.
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


def addresses(app: Flask, fill: Callable[[str], list[str]]) -> dict[str, set[str]]:
    """Every address of an app to the methods that it takes.

    `fill` gives the values of a variable, by its endpoint.
    """
    map_ = app.url_map
    paths = {
        re.sub(r"<[^>]+>", value, rule.rule)
        for rule in map_.iter_rules()
        for value in (fill(rule.endpoint) if rule.arguments else [""])
    }
    # Two routes may share an address.
    return {path: set(map_.bind("localhost").allowed_methods(path)) for path in sorted(paths)}


def failing(**_: object) -> str:
    """A view that has a bug, whose words hold what was sent."""
    raise RuntimeError(f"{CANARY}\r\n\x1b[31m[2026] forged line")


def error_answers(client: FlaskClient) -> Iterator[tuple[int, TestResponse]]:
    """One answer for every kind of refusal that an app as a whole has."""
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


def assert_common_headers(answer: TestResponse) -> None:
    """Whatever is answered has our headers, once each."""
    for name, value in HEADERS.items():
        assert answer.headers.getlist(name) == [value], name
    (policy,) = answer.headers.getlist("Content-Security-Policy")
    assert set(policy.split("; ")) >= POLICY
    assert "unsafe" not in policy
    assert answer.headers.getlist("Cache-Control")


def assert_told_without_words(answer: TestResponse, said: str) -> None:
    """A failure is a page with a number, and one line of a log with it; none has what was sent."""
    assert answer.status_code == 500
    (number,) = re.findall(r"<code>([0-9a-f]{8})</code>", answer.text)
    assert number in said
    assert "RuntimeError" in said
    assert "failing" in said
    for shown in (said, answer.text):
        assert CANARY not in shown
        assert "\x1b" not in shown
    assert len(said.splitlines()) == 1
