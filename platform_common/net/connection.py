"""A connection for one exchange: bounded altogether, and its failures told in our own words."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import SplitResult

from msgspec import Struct

from platform_common.message import Sentence
from platform_common.net.connect import connect, left
from platform_common.net.errors import ExchangeError, TooMuchError, UnwantedError, told

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")
LIMIT_BYTES = 1 << 20
_PORTS = {"http": 80, "https": 443}
# How long nobody notices that an answer is not wanted any more.
_LOOK_AGAIN_S = 0.25


class Bounds(Struct, frozen=True, kw_only=True):
    """What an exchange may take, and with whom.

    `limit_s` bounds everything together, from the look-up of the name to the last
    byte, and `limit_bytes` the head and the body of the answer. `ca_file` replaces
    the authorities that the system trusts. With `loopback` the server is on this
    device. `is_wanted`, where given, is asked again and again while nothing comes.
    """

    limit_s: float
    limit_bytes: int = LIMIT_BYTES
    ca_file: Path | None = None
    loopback: bool = False
    is_wanted: Callable[[], bool] | None = None


class Wire(io.RawIOBase):
    """A connection on which everything together is bounded in time, and reading in bytes."""

    _connection: socket.socket

    def __init__(self, parts: SplitResult, bounds: Bounds) -> None:
        self._parts, self._bounds = parts, bounds
        self._deadline = time.monotonic() + bounds.limit_s
        self._left_bytes = bounds.limit_bytes

    def open(self) -> socket.socket:
        """Connect to the server, with TLS where its address says so."""
        host = cast("str", self._parts.hostname)
        port = self._parts.port or _PORTS[self._parts.scheme]
        connection = connect(host, port, self._deadline, loopback=self._bounds.loopback)
        if self._parts.scheme == "https":
            with connection:  # Wrapping takes it over; whatever fails before that closes it.
                connection.settimeout(left(self._deadline))
                context = ssl.create_default_context(cafile=self._bounds.ca_file)
                connection = context.wrap_socket(connection, server_hostname=host)
        self._connection = connection
        return connection

    def telling(self, work: Callable[[], T]) -> T:
        """Do `work`; whatever a library raises there is told in our own words."""
        try:
            return work()
        except (OSError, http.client.HTTPException, ValueError) as error:
            failure = self.told(error)
        # Raised out here, so that it carries no other exception along.
        raise failure

    def told(self, error: Exception) -> ExchangeError:
        """What happened, in our own words."""
        return told(error, self._parts.netloc, self._parts.hostname, self._bounds.limit_s)

    def hurry(self, limit_s: float) -> None:
        """Bring the end of it all nearer."""
        self._deadline = min(self._deadline, time.monotonic() + limit_s)

    def readable(self) -> bool:
        """It is there to be read."""
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
            self._connection.settimeout(min(seconds, _LOOK_AGAIN_S) if is_wanted else seconds)
            try:
                return self._connection.recv_into(room)
            except TimeoutError:
                if is_wanted and not is_wanted():
                    raise UnwantedError(Sentence("Nobody waits for the answer")) from None

    def sendall(self, data: bytes) -> None:
        """Send `data`."""
        self._connection.settimeout(left(self._deadline))
        self._connection.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        """What an HTTP parser reads from."""
        return io.BufferedReader(self)
