"""Checks which site sent a request, as a defence against CSRF."""

from __future__ import annotations

import re

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_OWN_SITE = frozenset({"same-origin", "none"})
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_ORIGIN = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\[\]/:@?#\s]+)(?::([0-9]{1,5}))?")


def comes_from_another_site(
    method: str, site: str | None, origin: str | None, *, scheme: str, host: str
) -> bool:
    """Whether a browser sends this request for another site's page (ADR 17).

    `site` and `origin` are its headers `Sec-Fetch-Site` and `Origin`. A client without either is
    not a browser, so no page can misuse it.
    """
    if method in _SAFE:
        return False
    if site is not None:
        return site not in _OWN_SITE
    return origin is not None and _origin(origin) != _origin(f"{scheme}://{host}")


def _origin(text: str) -> tuple[str, str, str] | str:
    """Scheme, host and port; the text itself if it is not an origin, such as `null`."""
    found = _ORIGIN.fullmatch(text.lower())
    if found is None:
        return text
    scheme, host, port = found.groups()
    return scheme, host.removesuffix("."), port or _DEFAULT_PORTS[scheme]
