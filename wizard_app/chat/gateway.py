"""The assistant's gateway on this device: its health, and its answers to messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

import msgspec

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.net.client import Bounds, Incoming, exchange
from platform_common.net.connect import RefusedAddressError
from platform_common.net.errors import ExchangeError
from platform_common.plain_text import with_line_feeds, without_controls
from platform_common.records.profiles import Profile, gateway_url
from platform_common.secret import Secret
from wizard_app.chat.errors import AFTERWARDS_S, gateway_error, no_answer, refusal, see
from wizard_app.chat.event_stream import (
    ReadingError,
    completion_of,
    loads,
    reply_of,
    streamed,
    whole,
)
from wizard_app.chat.history import SHOWN_BYTES, Turn

LIMIT_S = 60.0
HEALTH_LIMIT_S = 2.0
CONTEXT_TURNS = 20
# A little less than the part of the history that a page reads, so the longest answer fits.
LIMIT_BYTES = SHOWN_BYTES - (1 << 10)
_HEALTH_BYTES = 64 << 10
_EVENTS = "text/event-stream"
_HEADERS = {"User-Agent": "platform-wizard", "Accept": f"application/json, {_EVENTS}"}
_NOT_FOUND = 404


class Health(NamedTuple):
    """Whether a gateway is up, and a sentence about it."""

    ready: bool
    said: Sentence
    advice: Sentence | None = None


class _Request(NamedTuple):
    """A message in one of the protocols: its URL, its body, and the reader of the answer."""

    path: str
    body: object
    read: Callable[[Incoming], Iterator[str]]


def health(profile: Profile, *, limit_s: float = HEALTH_LIMIT_S) -> Health:
    """Ask the health URL of `profile`'s gateway, within `limit_s`."""
    bounds = Bounds(limit_s=limit_s, limit_bytes=_HEALTH_BYTES, loopback=True)
    try:
        gateway_url(profile)
        with exchange(profile.http_check, _HEADERS, bounds) as incoming:
            if not incoming.is_good:
                reason = Sentence("it returned HTTP {status}", status=incoming.status)
                raise no_answer(profile, reason, see(profile))
    except (ExchangeError, RefusedAddressError) as error:
        failure = gateway_error(profile, error)
        return Health(ready=False, said=failure.said, advice=failure.advice)
    except PlatformError as error:
        return Health(ready=False, said=error.said, advice=error.advice)
    return Health(ready=True, said=Sentence("{name} is ready", name=profile.display_name))


def ask(
    profile: Profile,
    turns: Sequence[Turn],
    token: Secret | None,
    *,
    streaming: bool = False,
    is_wanted: Callable[[], bool] | None = None,
    limit_s: float = LIMIT_S,
) -> Generator[str]:
    """Yield the gateway's answer to the last of `turns`, in pieces as it arrives.

    With `streaming`, the gateway is asked for a stream. Everything together takes at most
    `limit_s`. Raises `GatewayError`, also in the middle of an answer,
    `PlatformError` for a wrong profile, and `ClientGoneError` once `is_wanted` returns false.
    """
    base = gateway_url(profile)
    deadline = time.monotonic() + limit_s
    headers = _HEADERS | {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token.reveal()}"
    requests = _requests(profile, turns, streaming=streaming)
    said_something = False
    try:
        for request in requests:
            bounds = Bounds(
                limit_s=max(deadline - time.monotonic(), 0),
                limit_bytes=LIMIT_BYTES,
                loopback=True,
                is_wanted=is_wanted,
            )
            body = msgspec.json.encode(request.body)
            with exchange(f"{base}{request.path}", headers, bounds, body=body) as incoming:
                if incoming.status == _NOT_FOUND and request is not requests[-1]:
                    continue
                if not incoming.is_good:
                    raise refusal(profile, incoming, request.path)
                for piece in request.read(incoming):
                    if text := without_controls(with_line_feeds(piece)):
                        said_something = said_something or not text.isspace()
                        yield text
                break
        if not said_something:
            raise ReadingError(Sentence("its answer is empty"))
    except (ExchangeError, RefusedAddressError, ReadingError) as error:
        failure = gateway_error(profile, error)
    else:
        return
    # Raised outside the handler, so that the original exception is not chained.
    raise failure


def _requests(profile: Profile, turns: Sequence[Turn], *, streaming: bool) -> list[_Request]:
    """The message in the profile's protocol; after the simple one, also in the other one."""
    messages = [{"role": turn.role, "content": turn.content} for turn in turns[-CONTEXT_TURNS:]]
    completions: dict[str, object] = {
        "model": profile.chat.model or profile.id,
        "messages": messages,
        "stream": streaming,
    }
    own_path = profile.chat.path
    if profile.chat.protocol == "chat-completions":
        return [_Request(own_path or "/v1/chat/completions", completions, _completion)]
    return [
        _Request(own_path or "/chat", {"message": turns[-1].content}, _reply),
        _Request("/v1/chat/completions", completions, _completion),
    ]


def _reply(incoming: Incoming) -> Iterator[str]:
    yield whole(reply_of(loads(b"".join(incoming.pieces()))))


def _completion(incoming: Incoming) -> Iterator[str]:
    if incoming.media_type == _EVENTS:
        yield from streamed(incoming.pieces(), lambda: incoming.hurry(AFTERWARDS_S))
        return
    data = b"".join(incoming.pieces())
    if data.lstrip().startswith((b"data:", b"event:", b":")):
        yield from streamed([data], lambda: None)
    else:
        yield whole(completion_of(loads(data)))
