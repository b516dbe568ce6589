"""A stand-in for the gateway of an assistant: `python -m dev.samples.gateway --port 8080`.

It speaks both protocols of the chat and answers the profiles' health checks. It has no model:
it repeats each message, and every answer says so.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import click

from dev.samples.gateway_answers import MODEL, answer, completion, streamed

LIMIT_BYTES = 4 << 20
_SIMPLE, _COMPLETIONS = PROTOCOLS = ("simple", "chat-completions")
_SILENCE_S = 30
_LINGER_S = 1
_MOST_READS = 10_000


class Manner(NamedTuple):
    """How the stand-in behaves.

    `only` limits it to one protocol, `token` is required from clients, `slow_s` is the delay before
    an answer to a message, and `pause_s` the one between the pieces of a streamed answer.
    """

    only: str = ""
    token: str = ""
    slow_s: float = 0
    pause_s: float = 0.03


class RefusedError(Exception):
    """A request that is refused, with a status and a sentence."""

    def __init__(self, status: HTTPStatus, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status, self.headers = status, headers


class Gateway(ThreadingHTTPServer):
    """The server, with a thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, manner: Manner) -> None:
        super().__init__((host, port), _Connection)
        self.manner = manner

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://{self.server_name}:{self.server_port}"

    def server_bind(self) -> None:
        """Listen, without looking up the name of this machine as the library does."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing when a client leaves before its answer is complete."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "stand-in", ""
    timeout = _SILENCE_S
    server: Gateway

    def _handle(self) -> None:
        try:
            # Read it in any case: the next request on this connection begins after it.
            body = self._body()
        except RefusedError as error:
            self.close_connection = True
            self._refuse(error, Connection="close")
            self._linger()
            return
        try:
            self._route().answer(self, body)
        except RefusedError as error:
            self._refuse(error)

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Handle every method: the library looks up `do_<METHOD>`."""
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    def send_json(self, value: object, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> None:
        """Answer with `value`."""
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, content in headers.items():
            self.send_header(name.replace("_", "-"), content)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_events(self, events: Iterator[str]) -> None:
        """Answer with a stream of events, and send each at once."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            data = f"data: {event}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def log_request(self, code: object = "", size: object = "") -> None:
        """Log nothing, because messages are private."""

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "Say the length of the body.")
        # Python refuses to parse a number with thousands of digits.
        if len(length) > 12 or int(length) > LIMIT_BYTES:
            reason = f"A body has {LIMIT_BYTES:,} bytes at most."
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
        return self.rfile.read(int(length))

    def _linger(self) -> None:
        """Read what the client still sends: if we closed now, it might not see the answer."""
        self.connection.settimeout(_LINGER_S)
        with contextlib.suppress(OSError):
            for _ in range(_MOST_READS):
                if not self.rfile.read1():
                    break

    def _route(self) -> _Route:
        path, manner = urlsplit(self.path).path, self.server.manner
        route = _ROUTES.get(path)
        if route is None or (manner.only and route.protocol not in ("", manner.only)):
            raise RefusedError(HTTPStatus.NOT_FOUND, f"There is nothing at {path[:80]}.")
        if self.command not in route.methods:
            allowed = ", ".join(route.methods)
            reason = f"Only {allowed} is allowed here."
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, reason, Allow=allowed)
        given = self.headers.get("Authorization", "").encode("latin-1", "replace")
        wanted = f"Bearer {manner.token}".encode()
        if route.protocol and manner.token and not hmac.compare_digest(given, wanted):
            reason = "Give the right token."
            raise RefusedError(HTTPStatus.UNAUTHORIZED, reason, WWW_Authenticate="Bearer")
        return route

    def _refuse(self, error: RefusedError, **headers: str) -> None:
        self.send_json({"error": {"message": str(error)}}, error.status, **error.headers, **headers)


def _health(connection: _Connection, _: bytes) -> None:
    connection.send_json({"status": "ok", "stand_in": True})


def _models(connection: _Connection, _: bytes) -> None:
    model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "nobody"}
    connection.send_json({"object": "list", "data": [model]})


def _simple(connection: _Connection, body: bytes) -> None:
    told = _read(body).get("message")
    time.sleep(connection.server.manner.slow_s)
    connection.send_json({"reply": answer(_text(told, "message"), "/chat", 1)})


def _completions(connection: _Connection, body: bytes) -> None:
    asked = _read(body)
    messages = asked.get("messages")
    if not (isinstance(messages, list) and messages and all(isinstance(m, dict) for m in messages)):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "messages must be a list of messages.")
    told = _text(messages[-1].get("content"), "content")
    said = answer(told, "/v1/chat/completions", len(messages))
    manner = connection.server.manner
    time.sleep(manner.slow_s)
    if asked.get("stream") is True:
        connection.send_events(streamed(said, manner.pause_s))
        return
    choice = {"index": 0, "finish_reason": "stop"}
    message = {"role": "assistant", "content": said}
    connection.send_json(completion("chat.completion", choice | {"message": message}))


@dataclass(frozen=True)
class _Route:
    """How a path is answered; without a protocol it needs no token."""

    answer: Callable[[_Connection, bytes], None]
    methods: tuple[str, ...] = ("GET", "HEAD")
    protocol: str = ""


_ROUTES = {
    "/healthz": _Route(_health),
    "/api/health": _Route(_health),
    "/chat": _Route(_simple, ("POST",), _SIMPLE),
    "/v1/models": _Route(_models, protocol=_COMPLETIONS),
    "/v1/chat/completions": _Route(_completions, ("POST",), _COMPLETIONS),
}


def _read(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "The body must be a JSON object.")
    return value


def _text(value: object, member: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{member} must be a text.")
    return value


@click.command()
@click.option("--bind", default="127.0.0.1", help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, help="The port; 0 means any free one."
)
@click.option("--only", type=click.Choice(PROTOCOLS), default=None, help="Speak one protocol.")
@click.option("--token", default="", help="Require this token.")
@click.option("--slow", default=0.0, help="Delay before each answer to a message, in seconds.")
@click.option(
    "--pause", default=0.03, help="Delay between pieces of a streamed answer, in seconds."
)
def main(bind: str, port: int, only: str | None, token: str, slow: float, pause: float) -> None:
    """Serve a stand-in for an assistant's gateway until Ctrl-C; it only repeats messages."""
    try:
        server = Gateway(bind, port, Manner(only or "", token, slow, pause))
    except OSError as error:
        reason = f"Cannot listen on {bind}, port {port}: {error.strerror}"
        raise click.ClickException(reason) from None
    with server as gateway:
        click.echo(f"A stand-in for a gateway, without a model: {gateway.url}")
        try:
            gateway.serve_forever()
        except KeyboardInterrupt:
            click.echo("Stopped.")


if __name__ == "__main__":
    main()
