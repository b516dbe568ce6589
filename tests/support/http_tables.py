"""What every answer of our apps is held to, and the addresses that an app has."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flask import Flask
from werkzeug.test import TestResponse

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "FOO")
URLENCODED = "application/x-www-form-urlencoded"
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


def addresses(app: Flask, values: Sequence[str]) -> dict[str, set[str]]:
    """Every address of an app to the methods that it takes.

    `values` stand in the place of an address's variable; a static file's name is `style.css`.
    """
    map_ = app.url_map
    paths = {
        re.sub(r"<[^>]+>", value, rule.rule)
        for rule in map_.iter_rules()
        for value in (["style.css"] if rule.endpoint == "static" else values)
    }
    # Two routes may share an address.
    return {path: set(map_.bind("localhost").allowed_methods(path)) for path in sorted(paths)}


def assert_common_headers(answer: TestResponse) -> None:
    """Whatever is answered has our headers, once each."""
    for name, value in HEADERS.items():
        assert answer.headers.getlist(name) == [value], name
    (policy,) = answer.headers.getlist("Content-Security-Policy")
    assert set(policy.split("; ")) >= POLICY
    assert "unsafe" not in policy
    assert answer.headers.getlist("Cache-Control")
