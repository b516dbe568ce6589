"""One GET to an address that somebody typed: bounded in time and bytes, told in our own words.

No redirect is followed, no proxy, password file or other setting of the
environment is looked at, nothing is unpacked, and certificates are verified.
What the libraries say goes nowhere: it may hold the address or a header, and with
them a key.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from platform_common.connecting import connect, left
from platform_common.exchange_errors import ExchangeError, TooMuchError, told
from platform_common.sentence import Sentence

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LIMIT_BYTES = 1 << 20
_PORTS = {"http": 80, "https": 443}


class Answer(Struct, frozen=True):
    """What the server said; `body` is empty unless the status is 2xx."""

    status: int
    location: str = ""
    body: bytes = b""


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
) -> Answer:
    """Ask for `url`, which must be http or https without a user name.

    `limit_s` bounds everything together, from the look-up of the name to the last
    byte, and `limit_bytes` the head and the body of the answer. `ca_file` replaces
    the authorities that the system trusts. Raises `ExchangeError`, for a longer answer
    `TooLongAnswerError`, or `RefusedAddressError`.
    """
    parts = urlsplit(url)
    deadline = time.monotonic() + limit_s
    try:
        with _opened(parts, deadline, ca_file) as connection:
            return _asked(parts, headers, _Wire(connection, deadline, limit_bytes))
    except (OSError, http.client.HTTPException, ValueError) as error:
        failure = told(error, parts.netloc, parts.hostname, limit_s)
    # Raised out here, so that it carries no other exception along.
    raise failure


def _opened(parts: SplitResult, deadline: float, ca_file: Path | None) -> socket.socket:
    host = cast("str", parts.hostname)
    connection = connect(host, parts.port or _PORTS[parts.scheme], deadline)
    if parts.scheme == "http":
        return connection
    with connection:  # Wrapping takes it over; whatever fails before that closes it.
        connection.settimeout(left(deadline))
        context = ssl.create_default_context(cafile=ca_file)
        return context.wrap_socket(connection, server_hostname=host)


def _asked(parts: SplitResult, headers: Mapping[str, str], wire: _Wire) -> Answer:
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    connection = http.client.HTTPConnection(parts.netloc)
    connection.sock = cast("socket.socket", wire)
    usual = {"Host": parts.netloc, "Accept-Encoding": "identity", "Connection": "close"}
    connection.request("GET", target, headers=usual | dict(headers))
    response = http.client.HTTPResponse(connection.sock, method="GET")
    response.begin()
    if not 200 <= response.status < 300:
        return Answer(response.status, response.headers.get("Location", ""))
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ExchangeError(
            Sentence(
                "{server} sends its answer compressed, although it was asked not to",
                server=parts.netloc,
            )
        )
    body = response.read(wire.limit_bytes)
    if response.length:
        raise ConnectionResetError
    return Answer(response.status, body=body)


class _Wire(io.RawIOBase):
    """A connection on which everything together is bounded in time, and reading in bytes."""

    def __init__(self, connection: socket.socket, deadline: float, limit_bytes: int) -> None:
        self._connection, self._deadline = connection, deadline
        self.limit_bytes = self._left_bytes = limit_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read what has come; raises what sockets raise."""
        if not self._left_bytes:
            raise TooMuchError
        self._connection.settimeout(left(self._deadline))
        count = self._connection.recv_into(memoryview(buffer)[: self._left_bytes])
        self._left_bytes -= count
        return count

    def sendall(self, data: bytes) -> None:
        """Send `data`."""
        self._connection.settimeout(left(self._deadline))
        self._connection.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What an HTTP parser reads from."""
        return io.BufferedReader(self)
