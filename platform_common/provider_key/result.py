"""The result of a key test, from the HTTP status and the body of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from platform_common.clock import is_implausible, today
from platform_common.message import Sentence
from platform_common.net.client import Answer, server_of
from platform_common.net.errors import wrong_clock
from platform_common.provider_key.request import KeyRequest
from platform_common.records.catalogue import Kind, Provider
from platform_common.secret import Secret

_LONGEST_HOST = 255


class KeyCheck(Struct, frozen=True):
    """The result of a test for programs; `message` is for people, `hint` the next step.

    `ok` means that it passed, `proved` that the key is right. `models` is the number of listed
    models, None without a list.
    """

    ok: bool
    message: str
    hint: str = ""
    proved: bool = False
    models: int | None = None
    http_status: int | None = None
    elapsed_ms: int = 0
    endpoint: str = ""


class Outcome(NamedTuple):
    """The result of a test, with the same sentences in translatable form."""

    check: KeyCheck
    said: Sentence
    advice: Sentence | None = None


class _Failure(NamedTuple):
    """The message for a status in `statuses`, and what to do next."""

    statuses: range
    said: Sentence
    advice: Sentence


_FAILURES = (
    _Failure(
        range(300, 400),
        Sentence("{server} redirects {onward}; the key was not sent there (HTTP {status})"),
        Sentence("If that is the right place, enter it as the address."),
    ),
    _Failure(
        range(404, 405),
        Sentence(
            "There is no {api}-style service at this address: {server} answered with HTTP {status}"
        ),
        Sentence("Check the base URL. Most end in a version such as /v1."),
    ),
    _Failure(
        range(429, 430),
        Sentence(
            "{name} is limiting requests right now, so the key could not be checked (HTTP {status})"
        ),
        Sentence("Wait, or raise the limit with the provider."),
    ),
    _Failure(
        range(500, 600),
        Sentence("{name} has a problem (HTTP {status})"),
        Sentence("Try again later."),
    ),
    _Failure(
        range(100, 1000),
        Sentence("{server} answered with HTTP {status}"),
        Sentence("Some services answer a wrong key this way. Check the key, then the address."),
    ),
)
_REJECTED = Sentence("{name} rejected this key (HTTP {status})")
_ASKS_FOR_KEY = Sentence("{server} requires a key, but {name} has none (HTTP {status})")
# Google answers 400 for an invalid key.
_REJECTIONS: Mapping[Kind, tuple[int, ...]] = {"query-key": (400, 401, 403)}


def outcome(
    said: Sentence, advice: Sentence | None = None, *, ok: bool = False, **more: Any
) -> Outcome:
    """Make an outcome with these sentences; `more` are further members of its `KeyCheck`."""
    hint = "" if advice is None else str(advice)
    return Outcome(KeyCheck(ok=ok, message=str(said), hint=hint, **more), said, advice)


def verdict(
    provider: Provider, credentials: Mapping[str, Secret], request: KeyRequest, answer: Answer
) -> Outcome:
    """Judge the key by the response."""
    status, server = answer.status, server_of(request.url)
    if 200 <= status < 300:
        return _passed(provider, server, answer)
    advice: Sentence | None
    if status in _REJECTIONS.get(provider.kind, (401, 403)):
        said, advice = _rejected(provider)
    else:
        _, said, advice = next(failure for failure in _FAILURES if status in failure.statuses)
    values = {
        "name": Sentence(provider.display_name),
        "server": server,
        "api": "OpenAI" if provider.kind.startswith("chat-") else provider.display_name,
        "status": status,
        "onward": _onward(answer.location, credentials),
    }
    return outcome(Sentence(said.text, **values, **said.values), advice, http_status=status)


def _rejected(provider: Provider) -> tuple[Sentence, Sentence | None]:
    if provider.takes_address:
        return _ASKS_FOR_KEY, None
    if provider.kind == "signed-cloud":
        # A signature contains the time, so a wrong clock makes it invalid.
        if is_implausible(today()):
            wrong = wrong_clock()
            return wrong.said, wrong.advice
        return _REJECTED, Sentence(
            "Check that the key is complete, belongs to this provider and is still valid. "
            "Also check the region and the device's clock ({day}).",
            day=today(),
        )
    if not provider.key_format:
        return _REJECTED, Sentence(
            "Check that the key is complete, belongs to this provider and is still valid."
        )
    return _REJECTED, Sentence(
        "Check that the key is complete, belongs to this provider and is still valid ({why}).",
        why=provider.key_format,
    )


def _onward(location: str, credentials: Mapping[str, Secret]) -> Sentence:
    """The target of a redirect: scheme and host only, without any key in it."""
    try:
        scheme, netloc, *_ = urlsplit(location)
    except ValueError:
        scheme = netloc = ""
    shown = f"{scheme}://{netloc}".lower()
    values = [secret.reveal() for secret in credentials.values()]
    forms = {form.lower() for value in values for form in (value, quote(value, safe=""))}
    hidden = "@" in netloc or len(netloc) > _LONGEST_HOST or any(form in shown for form in forms)
    if scheme in ("http", "https") and netloc and not hidden:
        return Sentence("to {address}", address=shown)
    return Sentence("elsewhere")


class _Model(Struct, gc=False):
    """An entry of a list of models; its members are ignored."""


class _Models(Struct):
    """The model lists of all kinds of services; further pages may have more."""

    data: tuple[_Model, ...] | None = None
    models: tuple[_Model, ...] | None = None
    model_summaries: tuple[_Model, ...] | None = msgspec.field(name="modelSummaries", default=None)
    has_more: bool = False
    next_page: str = msgspec.field(name="nextPageToken", default="")


# Created at import, because creating it in two threads at once crashes the process.
_decode = msgspec.json.Decoder(_Models | tuple[_Model, ...]).decode


def _listed(body: bytes) -> tuple[int, bool] | None:
    """The number of models in `body`, and whether there are more; None if it is not a list."""
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(answer, tuple):
        return len(answer), False
    lists = (answer.data, answer.models, answer.model_summaries)
    found = next((models for models in lists if models is not None), None)
    return None if found is None else (len(found), answer.has_more or bool(answer.next_page))


def _passed(provider: Provider, server: str, answer: Answer) -> Outcome:
    listed = _listed(answer.body)
    if listed is None:
        return outcome(
            Sentence(
                "{server} accepted the request but did not return a list of models", server=server
            ),
            Sentence("Check the base URL if the gateway cannot use this provider."),
            ok=True,
            http_status=answer.status,
        )
    count, more = listed
    available = _available(count, more=more)
    if provider.takes_address:
        said = Sentence("The server answers. {available}", available=available)
    elif provider.models_public:
        said = Sentence(
            "Reached {name}, but it lists models without a key, so the key could not be proved",
            name=Sentence(provider.display_name),
        )
    else:
        said = Sentence("The key works. {available}", available=available)
    return outcome(
        said, ok=True, proved=not provider.models_public, models=count, http_status=answer.status
    )


def _available(count: int, *, more: bool) -> Sentence:
    number = f"{count:,}"
    if more:
        return Sentence("{number} or more models available", number=number)
    if count == 1:
        return Sentence("1 model available")
    return Sentence("{number} models available", number=number)
