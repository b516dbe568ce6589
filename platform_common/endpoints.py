"""Addresses of HTTP services: what a record may name as one.

Each check raises `ValueError` with what is wrong.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_LONGEST = 2048
_URL = re.compile(
    r"https?://(?P<user>[^/?#@]*@)?(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?(?:[/?#][!-~]*)?"
)
_HIGHEST_PORT = 65535
_LOOPBACK = re.compile(r"127(?:\.[0-9]{1,3}){3}|localhost|\[::1\]")


def check_http_url(url: str) -> str:
    """A URL with a host and without a user name, which is returned: the host.

    What a log or a page must not show, such as a password, has no place in it.
    """
    found = _URL.fullmatch(url) if len(url) <= _LONGEST else None
    if found is None or int(found["port"] or 1) > _HIGHEST_PORT:
        raise ValueError("must be an http or https URL in plain ASCII")
    if found["user"]:
        raise ValueError("must not hold a user name or a password")
    try:
        urlsplit(url)
    except ValueError:  # What is in brackets is no address.
        raise ValueError("must be an http or https URL in plain ASCII") from None
    return found["host"]


def check_base_url(url: str) -> None:
    """Like `check_http_url`, for an address that paths are added to."""
    check_http_url(url)
    if "?" in url or "#" in url:
        raise ValueError("must end with its path, without ? and #")


def check_loopback_url(url: str) -> None:
    """Like `check_http_url`, for an address of this device alone."""
    if not _LOOPBACK.fullmatch(check_http_url(url)):
        raise ValueError("must be an address of this device, such as http://127.0.0.1:8080/")
