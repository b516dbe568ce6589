"""The rules for every response of our apps, and the addresses of an app."""

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
    """Every address of an app, with the methods that it accepts.

    `values` replace the variables of routes; the name of a static file is `style.css`.
    """
    map_ = app.url_map
    paths = {
        re.sub(r"<[^>]+>", value, rule.rule)
        for rule in map_.iter_rules()
        for value in (["style.css"] if rule.endpoint == "static" else values)
    }
    # Two routes can have the same address.
    return {path: set(map_.bind("localhost").allowed_methods(path)) for path in sorted(paths)}


def assert_common_headers(answer: TestResponse) -> None:
    """Check that a response has our headers, once each."""
    for name, value in HEADERS.items():
        assert answer.headers.getlist(name) == [value], name
    (policy,) = answer.headers.getlist("Content-Security-Policy")
    assert set(policy.split("; ")) >= POLICY
    assert "unsafe" not in policy
    assert answer.headers.getlist("Cache-Control")
