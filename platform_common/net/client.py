"""One HTTP request to an address that somebody typed, bounded in time and bytes.

No redirect is followed, no proxy, password file or other setting of the
environment is looked at, nothing is unpacked, and certificates are verified.
Errors never repeat what a library says: it may hold the address or a header, and
with them a key.
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
from platform_common.net.errors import ExchangeError, TooMuchError, UnwantedError, exchange_error

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")
LIMIT_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16
_PORTS = {"http": 80, "https": 443}
# How long nobody notices that an answer is not wanted any more.
_LOOK_AGAIN_S = 0.25


class Bounds(Struct, frozen=True, kw_only=True):
    """What an exchange may take, and with whom.

    `limit_s` bounds everything together, from the look-up of the name to the last
    byte, and `limit_bytes` the head and the body of the answer. `ca_file` replaces
    the authorities that the system trusts. With `loopback` the server must be on this
    device. `is_wanted`, where given, is called repeatedly while nothing arrives.
    """

    limit_s: float
    limit_bytes: int = LIMIT_BYTES
    ca_file: Path | None = None
    loopback: bool = False
    is_wanted: Callable[[], bool] | None = None


class Answer(Struct, frozen=True):
    """What the server said; `body` is empty unless the status is 2xx."""

    status: int
    location: str = ""
    body: bytes = b""


class _Connection(io.RawIOBase):
    """A connection on which everything together is bounded in time, and reading in bytes.

    It is the socket that `http.client` writes to, and the file that it reads from.
    """

    _socket: socket.socket

    def __init__(self, parts: SplitResult, bounds: Bounds) -> None:
        self._parts, self._bounds = parts, bounds
        self._deadline = time.monotonic() + bounds.limit_s
        self._left_bytes = bounds.limit_bytes

    def open(self) -> socket.socket:
        """Connect to the server, with TLS where its address says so."""
        host = cast("str", self._parts.hostname)
        port = self._parts.port or _PORTS[self._parts.scheme]
        opened = connect(host, port, self._deadline, loopback=self._bounds.loopback)
        if self._parts.scheme == "https":
            with opened:  # Wrapping takes it over; whatever fails before that closes it.
                opened.settimeout(left(self._deadline))
                context = ssl.create_default_context(cafile=self._bounds.ca_file)
                opened = context.wrap_socket(opened, server_hostname=host)
        self._socket = opened
        return opened

    def attempt(self, work: Callable[[], T]) -> T:
        """Do `work`; whatever a library raises there becomes an `ExchangeError`."""
        try:
            return work()
        except (OSError, http.client.HTTPException, ValueError) as error:
            failure = self.error(error)
        # Raised out here, so that it carries no other exception along.
        raise failure

    def error(self, error: Exception) -> ExchangeError:
        """What happened, in our own words."""
        return exchange_error(error, self._parts.netloc, self._parts.hostname, self._bounds.limit_s)

    def hurry(self, limit_s: float) -> None:
        """End everything within `limit_s` from now."""
        self._deadline = min(self._deadline, time.monotonic() + limit_s)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read what has come; raises what sockets raise, or `UnwantedError`."""
        if not self._left_bytes:
            raise TooMuchError
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
                    raise UnwantedError(Sentence("Nobody is waiting for the answer")) from None

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(left(self._deadline))
        self._socket.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)


class Incoming:
    """An answer whose body has yet to be read."""

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
        """The body as it comes; raises `ExchangeError`, also when less comes than announced."""
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
    """The host that `url` names, with its port where that is not the usual one."""
    return urlsplit(url).netloc


def fetch(url: str, headers: Mapping[str, str], bounds: Bounds) -> Answer:
    """Ask for `url`, which must be http or https without a user name.

    Raises `ExchangeError`, for a longer answer `TooLongAnswerError`, or `RefusedAddressError`.
    """
    with exchanged(url, headers, bounds) as incoming:
        body = b"".join(incoming.pieces()) if incoming.is_good else b""
        return Answer(incoming.status, incoming.location, body)


@contextlib.contextmanager
def exchanged(
    url: str, headers: Mapping[str, str], bounds: Bounds, *, body: bytes | None = None
) -> Iterator[Incoming]:
    """Send a request, with `body` a POST, for as long as the block lasts.

    `url` and the errors are as for `fetch`; also raises `UnwantedError` once the answer
    is not wanted any more.
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
