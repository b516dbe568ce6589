"""Servers that misbehave: HTTP written byte by byte, and a proxy that cuts connections."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Self


@dataclass(frozen=True)
class Request:
    """The request of a client; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def start(self) -> int:
        """The beginning of the requested range; 0 without one."""
        return int(self.headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")[0])


Answer = Callable[[Request, socket.socket], object]


def response(
    body: bytes = b"",
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
    *,
    length: int | None = None,
) -> bytes:
    """A whole response, after which the connection closes; `length` may be wrong, -1 omits it."""
    said = {"Content-Length": str(len(body) if length is None else length), "Connection": "close"}
    if length == -1:
        del said["Content-Length"]
    lines = [f"{name}: {value}\r\n" for name, value in (said | dict(headers or {})).items()]
    return f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode() + body


@dataclass
class RawServer:
    """A server whose responses are written by a function; it keeps the requests."""

    answer: Answer
    requests: list[Request] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    _open: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def url(self) -> str:
        """The address of its root."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def paths(self) -> list[str]:
        """The requested paths, in order."""
        return [request.path for request in self.requests]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        # shutdown wakes threads that wait in accept and recv; close alone does not.
        for connection in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for connection in (self._listener, *self._open):
            connection.close()

    def send(self, connection: socket.socket, data: bytes) -> None:
        """Send `data`."""
        connection.sendall(data)

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._start(partial(self._serve, connection))

    def _serve(self, connection: socket.socket) -> None:
        # Many tests are about clients that disconnect.
        with contextlib.suppress(OSError):
            request = _read_request(connection)
            if request is not None:
                self.requests.append(request)
                self.answer(request, connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _read_request(connection: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv(1 << 16)
        if not received:
            return None
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in rest)
    headers = {name.lower(): value for name, _, value in pairs}
    while len(body) < int(headers.get("content-length", "0")):
        received = connection.recv(1 << 16)
        if not received:
            return None
        body += received
    return Request(first.split(" ")[1], headers, body)


def serving(files: Mapping[str, bytes], special: Mapping[str, Answer] | None = None) -> RawServer:
    """A server of `files` (path to content); paths in `special` have their own responses."""

    def answer(request: Request, connection: socket.socket) -> None:
        if special and request.path in special:
            special[request.path](request, connection)
        elif request.path in files:
            server.send(connection, response(files[request.path]))
        else:
            server.send(connection, response(b"not here", "404 Not Found"))

    server = RawServer(answer)
    return server


@contextlib.contextmanager
def cutting_proxy(
    port: int,
    *,
    after_bytes: int,
    times: int,
    reset: bool = False,
    on_cut: Callable[[], object] = lambda: None,
) -> Iterator[int]:
    """A TCP proxy to `port`; yields the port on which it listens.

    The first `times` connections that carry more than `after_bytes` to the client are cut off
    there, with a reset or as if the server had closed them.
    """
    left = times
    lock = threading.Lock()
    upstreams: list[socket.socket] = []

    def relay(client: socket.socket, first: bytes) -> None:
        nonlocal left
        upstream = socket.create_connection(("127.0.0.1", port))
        upstreams.append(upstream)
        carried = 0
        with upstream:
            upstream.sendall(first)
            while True:
                data = upstream.recv(1 << 14)
                if not data:
                    return
                with lock:
                    cut = left > 0 and carried + len(data) > after_bytes
                    left -= cut
                if cut:
                    on_cut()
                    client.sendall(data[: after_bytes - carried])
                    if reset:
                        # With a linger time of zero, close sends a reset instead of an end.
                        client.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0"
                        )
                        client.close()
                    return
                client.sendall(data)
                carried += len(data)

    def answer(request: Request, client: socket.socket) -> None:
        # One request for each connection, so that it carries one file.
        headers = dict(request.headers) | {"connection": "close"}
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        relay(client, f"GET {request.path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode("latin-1"))

    try:
        with RawServer(answer) as server:
            yield int(server.url.rpartition(":")[2])
    finally:
        for upstream in upstreams:
            upstream.close()
