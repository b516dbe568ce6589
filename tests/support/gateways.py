"""Gateways for tests of the chat: the stand-in, and servers with any answer."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from dev.samples.gateway import Gateway, Manner
from platform_common.records.profiles import Profile, parse
from tests.support.raw_server import Answer, RawServer, Request, response

AT_ONCE = Manner(pause_s=0)


def definition(url: str, chat: str = "") -> str:
    """The file of a profile whose gateway is at `url`; `chat` are lines for its section."""
    return (
        f'[profile]\ndisplay_name = "Box"\n[health]\nhttp_check = "{url}/healthz"\n[chat]\n{chat}\n'
    )


def profile(url: str, chat: str = "") -> Profile:
    """That profile, parsed."""
    return parse(definition(url, chat).encode(), "box")


def install(root: Path, url: str, chat: str = "") -> None:
    """Install it as the only profile of the device at `root`."""
    folder = root / "etc/platform/profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "box.toml").write_text(definition(url, chat))


@contextlib.contextmanager
def stand_in(manner: Manner = AT_ONCE, port: int = 0) -> Iterator[str]:
    """Run the stand-in of `make run` until the block ends; yield its address."""
    with Gateway("127.0.0.1", port, manner) as gateway:
        thread = threading.Thread(target=gateway.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield gateway.url
        finally:
            gateway.shutdown()
            thread.join(10)


def answering(*answers: bytes | Answer) -> RawServer:
    """A server that gives the n-th answer to the n-th request, and the last one from then on."""
    left = list(answers)

    def answer(request: Request, connection: socket.socket) -> None:
        chosen = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(chosen, bytes):
            server.send(connection, chosen)
        else:
            chosen(request, connection)

    server = RawServer(answer)
    return server


def said(value: object) -> bytes:
    """A response with `value` as JSON."""
    return response(json.dumps(value).encode(), headers={"Content-Type": "application/json"})


def reply(text: str) -> bytes:
    """An answer in the simple protocol."""
    return said({"reply": text})


def completion(content: object) -> bytes:
    """A whole answer in the other protocol."""
    return said({"choices": [{"message": {"role": "assistant", "content": content}}]})


def delta(content: object, finish_reason: str | None = None) -> str:
    """One event of a stream, without its end."""
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish_reason}
    return f"data: {json.dumps({'choices': [choice]})}"


EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
DONE = "data: [DONE]\n\n"


def events(*parts: str) -> bytes:
    """A stream of events, each of which ends with a blank line."""
    return EVENTS + "".join(f"{part}\n\n" for part in parts).encode()
