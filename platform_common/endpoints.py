"""Addresses of HTTP services: what a record may name as one."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

_LOOPBACK = re.compile(r"127(?:\.[0-9]{1,3}){3}|localhost|::1")
_LONGEST = 2048


def check_http_url(url: str) -> None:
    """Raise `ValueError` unless `url` is http or https, with a host and without a user name.

    What a log or a page must not show, such as a password, has no place in it.
    """
    parts = _split(url)
    if not url.startswith(("http://", "https://")) or not parts.hostname:
        raise ValueError("must be an http or https URL")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user name or a password")


def check_base_url(url: str) -> None:
    """Like `check_http_url`, for an address that paths are added to."""
    check_http_url(url)
    if "?" in url or "#" in url:
        raise ValueError("must end with its path, without ? and #")


def check_loopback_url(url: str) -> None:
    """Like `check_http_url`, for an address of this device alone."""
    check_http_url(url)
    if not _LOOPBACK.fullmatch(_split(url).hostname or ""):
        raise ValueError("must be an address of this device, such as http://127.0.0.1:8080/")


def _split(url: str) -> SplitResult:
    if len(url) > _LONGEST or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"must be at most {_LONGEST:,} printable ASCII characters without blanks")
    try:
        parts = urlsplit(url)
        wrong_port = parts.port == 0  # Reading it raises for what is no port at all.
    except ValueError:
        raise ValueError("must be a URL that can be taken apart") from None
    if wrong_port:
        raise ValueError("must have a port from 1 to 65535, or none")
    return parts
