"""One request to an address that somebody typed: bounded in time and bytes, told in our own words.

No redirect is followed, no proxy, password file or other setting of the
environment is looked at, nothing is unpacked, and certificates are verified.
What the libraries say goes nowhere: it may hold the address or a header, and with
them a key.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from platform_common.message import Sentence
from platform_common.net.connection import LIMIT_BYTES, Bounds, Wire
from platform_common.net.errors import ExchangeError

__all__ = ["LIMIT_BYTES", "Answer", "Bounds", "Incoming", "exchanged", "fetch", "server_of"]

_PIECE_BYTES = 1 << 16


class Answer(Struct, frozen=True):
    """What the server said; `body` is empty unless the status is 2xx."""

    status: int
    location: str = ""
    body: bytes = b""


class Incoming:
    """An answer whose body has yet to be read."""

    def __init__(self, response: http.client.HTTPResponse, wire: Wire, server: str) -> None:
        self._response, self._wire, self._server = response, wire, server
        self.status = response.status
        self.location = response.headers.get("Location", "")
        self.media_type = response.headers.get_content_type()

    @property
    def is_good(self) -> bool:
        """Whether the status says so."""
        return 200 <= self.status < 300

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes; raises `ExchangeError`, also when less comes than announced."""
        if self._response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ExchangeError(
                Sentence(
                    "{server} sends its answer compressed, although it was asked not to",
                    server=self._server,
                )
            )
        while piece := self._wire.telling(lambda: self._response.read1(_PIECE_BYTES)):
            yield piece
        if self._response.length:
            raise self._wire.told(ConnectionResetError())

    def hurry(self, limit_s: float) -> None:
        """Give what is still to come no longer than this."""
        self._wire.hurry(limit_s)


def server_of(url: str) -> str:
    """The host that `url` names, with its port where that is not the usual one."""
    return urlsplit(url).netloc


def fetch(
    url: str,
    headers: Mapping[str, str],
    *,
    limit_s: float,
    limit_bytes: int = LIMIT_BYTES,
    ca_file: Path | None = None,
    loopback: bool = False,
) -> Answer:
    """Ask for `url`, which must be http or https without a user name.

    The bounds are those of `Bounds`. Raises `ExchangeError`, for a longer answer
    `TooLongAnswerError`, or `RefusedAddressError`.
    """
    bounds = Bounds(limit_s=limit_s, limit_bytes=limit_bytes, ca_file=ca_file, loopback=loopback)
    with exchanged(url, headers, bounds) as incoming:
        body = b"".join(incoming.pieces()) if incoming.is_good else b""
        return Answer(incoming.status, incoming.location, body)


@contextlib.contextmanager
def exchanged(
    url: str, headers: Mapping[str, str], bounds: Bounds, *, body: bytes | None = None
) -> Iterator[Incoming]:
    """Send a request, with `body` a POST, for as long as the block lasts.

    `url` is one for `fetch`, and the errors are those of `fetch`; also raises
    `UnwantedError`, once the answer is not wanted any more.
    """
    parts = urlsplit(url)
    wire = Wire(parts, bounds)
    connection = wire.telling(wire.open)
    with connection:
        yield wire.telling(lambda: _asked(parts, headers, body, wire))


def _asked(
    parts: SplitResult, headers: Mapping[str, str], body: bytes | None, wire: Wire
) -> Incoming:
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    method = "GET" if body is None else "POST"
    connection = http.client.HTTPConnection(parts.netloc)
    connection.sock = cast("socket.socket", wire)
    usual = {"Host": parts.netloc, "Accept-Encoding": "identity", "Connection": "close"}
    connection.request(method, target, body=body, headers=usual | dict(headers))
    response = http.client.HTTPResponse(connection.sock, method=method)
    response.begin()
    return Incoming(response, wire, parts.netloc)
