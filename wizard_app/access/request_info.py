"""Facts about a request: its tokens, its origin and its target."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from flask import request

from platform_common.host_names import name_of
from platform_common.net.networks import address_of

TOKEN, RETRY = "token", "retry"
# A proxy adds one of these; direct requests from this machine have none.
_FORWARDED = (
    *("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"),
    *("X-Forwarded-Protocol", "X-Forwarded-Ssl"),
)
_START = "/wizard"


def presented() -> list[str]:
    """Return the launch tokens in the address and the header of this request."""
    tokens = request.args.getlist(TOKEN)
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return [*tokens, value.strip(" ")] if scheme.lower() == "bearer" else tokens


def is_only_looking() -> bool:
    """Whether possibly nobody will see the response (HEAD, OPTIONS, prefetch)."""
    purposes = (request.headers.get(name, "") for name in ("Sec-Purpose", "Purpose", "X-Moz"))
    return request.method in ("HEAD", "OPTIONS") or any(
        purpose.lower().startswith("prefetch") for purpose in purposes
    )


def clean_address(retry: str = "") -> str:
    """The address of this request without its token; `retry` marks a second attempt."""
    path = request.path
    if request.method != "GET" or request.url_rule is None or path.startswith("//"):
        path = _START
    rest = [
        (name, value)
        for name, value in request.args.items(multi=True)
        if name not in (TOKEN, RETRY)
    ]
    query = urlencode(rest + ([(RETRY, retry)] if retry else []))
    return quote(path) + (f"?{query}" if query else "")


def _is_loopback(address: str | None) -> bool:
    """Whether it is this machine; a socket file, which has no address, counts too."""
    if not address:
        return True
    found = address_of(address)
    return found is not None and found.is_loopback


def is_forwarded() -> bool:
    """Whether this request came through a proxy, or claims to."""
    return any(name in request.headers for name in _FORWARDED)


def is_from_loopback() -> bool:
    """Whether this request was sent from this machine."""
    return _is_loopback(request.remote_addr)


def asks_for_loopback() -> bool:
    """Whether the requested host is a loopback address."""
    name = name_of(request.environ.get("HTTP_HOST", "")) or "unknown"
    return name == "localhost" or name.endswith(".localhost") or _is_loopback(name)
