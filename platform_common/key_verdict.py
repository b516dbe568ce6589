"""What an answer says about a key: an HTTP status and a body become a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from platform_common.clock import is_implausible, today
from platform_common.exchange import Answer, server_of
from platform_common.exchange_errors import wrong_clock
from platform_common.key_request import KeyRequest
from platform_common.records.catalogue import Kind, Provider
from platform_common.secret import Secret

_LONGEST_HOST = 255


class KeyCheck(Struct, frozen=True):
    """How a test went; `message` is what to say, `hint` the next step.

    `ok` is a pass; `proved` that the pass shows the key to be right. `models` is
    how many the provider listed, None when it listed none.
    """

    ok: bool
    message: str
    hint: str = ""
    proved: bool = False
    models: int | None = None
    http_status: int | None = None
    elapsed_ms: int = 0
    endpoint: str = ""


class _Told(NamedTuple):
    """What to say of an answer whose status is in `statuses`, and what to do next."""

    statuses: range
    message: str
    hint: str


_FAILURES = (
    _Told(
        range(300, 400),
        "{server} leads {onward}, and no key is sent there (HTTP {status})",
        "If that is the right place, put it in as the address.",
    ),
    _Told(
        range(404, 405),
        "{server} answered, but not as a {kind} service (HTTP {status})",
        "Check the base URL; most end in a version such as /v1.",
    ),
    _Told(
        range(429, 430),
        "{name} accepted the key, but it is over its limit (HTTP {status})",
        "Wait, or raise the limit with the provider.",
    ),
    _Told(range(500, 600), "{name} has a problem (HTTP {status})", "Try again later."),
    _Told(
        range(100, 1000),
        "{server} answers HTTP {status}",
        "Some services say so to a wrong key: check the key, then the address.",
    ),
)
_REJECTED = "{name} rejected this key (HTTP {status})"
_CHECK_KEY = "Check that it is whole, of this provider, and still valid"
# Google says 400 to what is none of its keys.
_REJECTIONS: Mapping[Kind, tuple[int, ...]] = {"query-key": (400, 401, 403)}


def verdict(
    provider: Provider, credentials: Mapping[str, Secret], request: KeyRequest, answer: Answer
) -> KeyCheck:
    """What an answer says about the key."""
    status, server = answer.status, server_of(request.url)
    if 200 <= status < 300:
        return _passed(provider, server, answer)
    if status in _REJECTIONS.get(provider.kind, (401, 403)):
        message, hint = _rejected(provider)
    else:
        _, message, hint = next(told for told in _FAILURES if status in told.statuses)
    message = message.format(
        name=provider.display_name,
        server=server,
        kind=provider.kind,
        status=status,
        onward=_onward(answer.location, credentials),
    )
    return KeyCheck(ok=False, message=message, hint=hint, http_status=status)


def _rejected(provider: Provider) -> tuple[str, str]:
    if provider.takes_address:
        return "{server} asks for a key, and {name} has none (HTTP {status})", ""
    if provider.kind == "signed-cloud":
        # A signature is of its time: a wrong clock makes it a wrong one.
        if is_implausible(today()):
            wrong = wrong_clock()
            return wrong.message, wrong.hint
        return _REJECTED, f"{_CHECK_KEY}; and the region, and the device's clock ({today()})."
    looks = f" ({provider.key_format})" if provider.key_format else ""
    return _REJECTED, f"{_CHECK_KEY}{looks}."


def _onward(location: str, credentials: Mapping[str, Secret]) -> str:
    """Where a redirect leads to: scheme and host alone, and no key that it holds."""
    try:
        scheme, netloc, *_ = urlsplit(location)
    except ValueError:
        scheme = netloc = ""
    shown = f"{scheme}://{netloc}".lower()
    values = [secret.reveal() for secret in credentials.values()]
    forms = {form.lower() for value in values for form in (value, quote(value, safe=""))}
    hidden = "@" in netloc or len(netloc) > _LONGEST_HOST or any(form in shown for form in forms)
    return f"to {shown}" if scheme in ("http", "https") and netloc and not hidden else "elsewhere"


class _Model(Struct, gc=False):
    """An entry of a list of models, of which nothing is kept."""


class _Models(Struct):
    """The lists that services of all kinds answer with; a later page may hold more."""

    data: tuple[_Model, ...] | None = None
    models: tuple[_Model, ...] | None = None
    model_summaries: tuple[_Model, ...] | None = msgspec.field(name="modelSummaries", default=None)
    has_more: bool = False
    next_page: str = msgspec.field(name="nextPageToken", default="")


# Made when this module is: threads that make one at the same time end the process.
_decode = msgspec.json.Decoder(_Models | tuple[_Model, ...]).decode


def _listed(body: bytes) -> tuple[int, bool] | None:
    """How many models `body` lists, and whether there are more of them; None for no list."""
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(answer, tuple):
        return len(answer), False
    lists = (answer.data, answer.models, answer.model_summaries)
    found = next((models for models in lists if models is not None), None)
    return None if found is None else (len(found), answer.has_more or bool(answer.next_page))


def _passed(provider: Provider, server: str, answer: Answer) -> KeyCheck:
    listed = _listed(answer.body)
    if listed is None:
        return KeyCheck(
            ok=True,
            message=f"{server} accepted the request, but not with a list of models",
            hint="Check the base URL if the gateway cannot use this provider.",
            http_status=answer.status,
        )
    count, more = listed
    available = f"{count:,}{' or more' if more else ''} model{'s' * (count != 1 or more)} available"
    if provider.takes_address:
        said = f"The server answers. {available}"
    elif provider.models_public:
        said = (
            f"Reached {provider.display_name}, but it lists models without a key,"
            " so the key could not be proved"
        )
    else:
        said = f"Key works. {available}"
    return KeyCheck(
        ok=True,
        message=said,
        proved=not provider.models_public,
        models=count,
        http_status=answer.status,
    )
