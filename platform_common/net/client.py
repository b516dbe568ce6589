"""One HTTP request to an address that somebody typed, bounded in time and bytes.

No redirect is followed, no proxy, netrc file or other setting of the environment is used,
nothing is decompressed, and certificates are verified. Errors never repeat a library's message,
which may contain the address or a header, and so a key.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from platform_common.message import Sentence
from platform_common.net.connect import connect, left
from platform_common.net.errors import (
    ClientGoneError,
    ExchangeError,
    SizeLimitError,
    exchange_error,
)

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")
LIMIT_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16
_PORTS = {"http": 80, "https": 443}
# How often to check whether the answer is still wanted.
_LOOK_AGAIN_S = 0.25


class Bounds(Struct, frozen=True, kw_only=True):
    """Limits of an exchange, and which servers are allowed.

    `limit_s` is the limit for everything together, from the name look-up to the last byte;
    `limit_bytes` is for the head and the body of the answer. `ca_file` replaces the system's
    authorities. With `loopback`, the server must be on this device. `is_wanted`, if given, is
    called repeatedly while nothing arrives.
    """

    limit_s: float
    limit_bytes: int = LIMIT_BYTES
    ca_file: Path | None = None
    loopback: bool = False
    is_wanted: Callable[[], bool] | None = None


class Answer(Struct, frozen=True):
    """The server's response; `body` is empty unless the status is 2xx."""

    status: int
    location: str = ""
    body: bytes = b""


class _Connection(io.RawIOBase):
    """A connection with one deadline for everything and a byte limit for reading.

    `http.client` uses it both as the socket to write to and as the file to read from.
    """

    _socket: socket.socket

    def __init__(self, parts: SplitResult, bounds: Bounds) -> None:
        self._parts, self._bounds = parts, bounds
        self._deadline = time.monotonic() + bounds.limit_s
        self._left_bytes = bounds.limit_bytes

    def open(self) -> socket.socket:
        """Connect to the server, with TLS for an https address."""
        host = cast("str", self._parts.hostname)
        port = self._parts.port or _PORTS[self._parts.scheme]
        opened = connect(host, port, self._deadline, loopback=self._bounds.loopback)
        if self._parts.scheme == "https":
            # wrap_socket takes the socket over; if anything fails before that, `with` closes it.
            with opened:
                opened.settimeout(left(self._deadline))
                context = ssl.create_default_context(cafile=self._bounds.ca_file)
                opened = context.wrap_socket(opened, server_hostname=host)
        self._socket = opened
        return opened

    def attempt(self, work: Callable[[], T]) -> T:
        """Run `work`; turn any library exception into an `ExchangeError`."""
        try:
            return work()
        except (OSError, http.client.HTTPException, ValueError) as error:
            failure = self.error(error)
        # Raised outside the handler, so that the original exception is not chained.
        raise failure

    def error(self, error: Exception) -> ExchangeError:
        """Describe the failure in our own words."""
        return exchange_error(error, self._parts.netloc, self._parts.hostname, self._bounds.limit_s)

    def hurry(self, limit_s: float) -> None:
        """Shorten the deadline to `limit_s` from now."""
        self._deadline = min(self._deadline, time.monotonic() + limit_s)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read what has arrived; raises what sockets raise, or `ClientGoneError`."""
        if not self._left_bytes:
            raise SizeLimitError
        count = self._received(memoryview(buffer)[: self._left_bytes])
        self._left_bytes -= count
        return count

    def _received(self, room: memoryview) -> int:
        is_wanted = self._bounds.is_wanted
        while True:
            seconds = left(self._deadline)
            self._socket.settimeout(min(seconds, _LOOK_AGAIN_S) if is_wanted else seconds)
            try:
                return self._socket.recv_into(room)
            except TimeoutError:
                if is_wanted and not is_wanted():
                    raise ClientGoneError(Sentence("Nobody is waiting for the answer")) from None

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(left(self._deadline))
        self._socket.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)


class Incoming:
    """A response whose body has not been read yet."""

    def __init__(
        self, response: http.client.HTTPResponse, connection: _Connection, server: str
    ) -> None:
        self._response, self._connection, self._server = response, connection, server
        self.status = response.status
        self.location = response.headers.get("Location", "")
        self.media_type = response.headers.get_content_type()

    @property
    def is_good(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives; raises `ExchangeError`, also if it is too short."""
        if self._response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ExchangeError(
                Sentence(
                    "{server} sent a compressed answer, although it was asked not to",
                    server=self._server,
                )
            )
        while piece := self._connection.attempt(lambda: self._response.read1(_PIECE_BYTES)):
            yield piece
        if self._response.length:
            raise self._connection.error(ConnectionResetError())

    def hurry(self, limit_s: float) -> None:
        """Read the rest within `limit_s` from now."""
        self._connection.hurry(limit_s)


def server_of(url: str) -> str:
    """The host of `url`, with its port unless it is the default."""
    return urlsplit(url).netloc


def fetch(url: str, headers: Mapping[str, str], bounds: Bounds) -> Answer:
    """Send a GET to `url`, which must be http or https without a user name.

    Raises `ExchangeError`, `TooLongAnswerError` for a longer response, or
    `RefusedAddressError`.
    """
    with exchange(url, headers, bounds) as incoming:
        body = b"".join(incoming.pieces()) if incoming.is_good else b""
        return Answer(incoming.status, incoming.location, body)


@contextlib.contextmanager
def exchange(
    url: str, headers: Mapping[str, str], bounds: Bounds, *, body: bytes | None = None
) -> Iterator[Incoming]:
    """Send a request, a POST if there is a `body`; the connection closes after the block.

    `url` and the errors are as for `fetch`; also raises `ClientGoneError` once the answer is no
    longer wanted.
    """
    parts = urlsplit(url)
    connection = _Connection(parts, bounds)
    with connection.attempt(connection.open):
        yield connection.attempt(lambda: _asked(parts, headers, body, connection))


def _asked(
    parts: SplitResult, headers: Mapping[str, str], body: bytes | None, connection: _Connection
) -> Incoming:
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    method = "GET" if body is None else "POST"
    request = http.client.HTTPConnection(parts.netloc)
    request.sock = cast("socket.socket", connection)
    usual = {"Host": parts.netloc, "Accept-Encoding": "identity", "Connection": "close"}
    request.request(method, target, body=body, headers=usual | dict(headers))
    response = http.client.HTTPResponse(request.sock, method=method)
    response.begin()
    return Incoming(response, connection, parts.netloc)
