"""Builds the request that tests a key, for each kind of provider, without I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from msgspec import Struct

from platform_common.errors import PlatformError
from platform_common.records.catalogue import Kind, Provider
from platform_common.secret import Secret, parse_secret
from platform_common.validation import check_base_url, check_region
from platform_common.version import VERSION

_HEADERS = {"Accept": "application/json", "User-Agent": f"platform-appliance/{VERSION}"}
_RUNTIME_HOST = re.compile(
    r"bedrock(?:-runtime)?(?P<fips>-fips)?\.[a-z0-9-]+\.(?P<domain>amazonaws\.com(?:\.cn)?)"
)


class IncompleteError(PlatformError):
    """A value is missing or invalid, so nothing was sent."""


class KeyRequest(Struct, frozen=True):
    """A GET; its `repr` only shows the base address, because the rest may contain the key."""

    endpoint: str
    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return f"KeyRequest({self.endpoint!r})"


class _Asking(NamedTuple):
    """The requested path, and the function that adds the first `takes` credentials."""

    path: str
    attach: Callable[..., KeyRequest]
    takes: int = 1


def build_request(
    provider: Provider, credentials: Mapping[str, Secret], *, endpoint: str = "", model: str = ""
) -> KeyRequest:
    """Build the request; `credentials` are by variable, `endpoint` replaces the default.

    Raises `IncompleteError` or `SecretError`, which contain no value.
    """
    names = provider.variables
    absent = [name for name in names if name not in credentials]
    if absent:
        raise IncompleteError(f"{provider.display_name} also needs {' and '.join(absent)}")
    if provider.kind == "hosted-inference" and not model:
        raise IncompleteError(
            f"{provider.display_name} needs the id of a model",
            hint="Choose a model that it hosts.",
        )
    values = [parse_secret(credentials[name].reveal(), name).reveal() for name in names]
    path, attach, takes = _KINDS[provider.kind]
    if provider.takes_address:
        base = _base(values[0], names[0])
        return KeyRequest(base, f"{base}{path}", _HEADERS)
    base = _base(endpoint or provider.endpoint_default, f"The address of {provider.display_name}")
    if len(values) < takes:
        raise IncompleteError(f"{provider.display_name} needs {takes} variables in the catalogue")
    return attach(KeyRequest(base, f"{base}{path}", _HEADERS), *values[:takes])


def _base(url: str, what: str) -> str:
    if not url:
        raise IncompleteError(
            f"{what} is missing", hint="Give its base URL, such as http://192.168.1.20:8000/v1."
        )
    try:
        check_base_url(url)
    except ValueError as error:
        # Not shown: a key may have been entered in place of the address by mistake.
        problem = str(error)
    else:
        return url.rstrip("/")
    raise IncompleteError(f"{what} {problem}")


def _with(request: KeyRequest, headers: Mapping[str, str], url: str = "") -> KeyRequest:
    return KeyRequest(request.endpoint, url or request.url, {**request.headers, **headers})


def _bearer(request: KeyRequest, key: str) -> KeyRequest:
    return _with(request, {"Authorization": f"Bearer {key}"})


def _own_header(request: KeyRequest, key: str) -> KeyRequest:
    return _with(request, {"x-api-key": key, "anthropic-version": "2023-06-01"})


def _in_query(request: KeyRequest, key: str) -> KeyRequest:
    return _with(request, {}, f"{request.url}?key={quote(key, safe='')}")


def _signed(request: KeyRequest, access_key: str, secret_key: str, region: str) -> KeyRequest:
    try:
        check_region(region)
    except ValueError:
        hint = "A region is written like us-east-1."
        raise IncompleteError("The region is not valid", hint=hint) from None
    # Imported here: only this kind of provider needs them, and they are slow to load.
    import requests
    from requests_aws4auth import AWS4Auth

    url = _control_url(request.url, region)
    prepared = requests.Request("GET", url, headers={"Host": urlsplit(url).netloc}).prepare()
    signed = AWS4Auth(access_key, secret_key, region, "bedrock")(prepared)
    return _with(request, signed.headers, url)


def _control_url(url: str, region: str) -> str:
    """The address that lists models in `region`; an address that is not Amazon's is unchanged."""
    parts = urlsplit(url)
    found = _RUNTIME_HOST.fullmatch(parts.hostname or "")
    if not found:
        return url
    host = f"bedrock{found['fips'] or ''}.{region}.{found['domain']}"
    return parts._replace(netloc=host).geturl()


_KINDS: Mapping[Kind, _Asking] = {
    "chat-compatible": _Asking("/models", _bearer),
    "chat-reference": _Asking("/models", _bearer),
    "messages-header": _Asking("/v1/models", _own_header),
    "query-key": _Asking("/models", _in_query),
    "signed-cloud": _Asking("/foundation-models", _signed, 3),
    "hosted-inference": _Asking("/models", _bearer),
}
