"""The chat's history as a file, generated while it is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from wizard_app.chat.history import ChatHistory, Turn

CONTENT_TYPES: Mapping[str, str] = {
    "md": "text/markdown; charset=utf-8",
    "jsonl": "application/x-ndjson",
}
_NAMES = {"user": "You", "assistant": "Assistant"}


def opened(history: ChatHistory, kind: str) -> Iterator[bytes]:
    """Yield every turn as a part of a file of that kind; raises `AccessError`.

    The history is opened before this returns, so that an error comes before the response starts.
    """
    begin, part = _KINDS[kind]
    parts = (part(line, turn) for line, turn in history.lines())
    first = next(parts, b"")
    return chain([begin, first], parts)


def file_name(device: str, kind: str) -> str:
    """The name of the file."""
    return f"chat-{re.sub(r'[^a-z0-9-]+', '-', device.lower())}.{kind}"


def _section(_: bytes, turn: Turn) -> bytes:
    name = "No answer" if turn.error else _NAMES[turn.role]
    ending = "\n\n*(stopped)*" if turn.stopped else ""
    when = f", {turn.at}" if turn.at else ""
    return f"\n## {name}{when}\n\n{turn.content}{ending}\n".encode()


_KINDS: Mapping[str, tuple[bytes, Callable[[bytes, Turn], bytes]]] = {
    "md": (b"# Chat\n", _section),
    "jsonl": (b"", lambda line, _: line + b"\n"),
}
