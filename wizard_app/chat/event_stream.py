"""Turns a gateway's response, bytes in pieces of any size, into text.

Nothing here does I/O. Unreadable content raises `ReadingError`; the caller, who knows the
gateway, adds the rest of the message.
"""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from platform_common.errors import PlatformError
from platform_common.message import Sentence

_LONGEST_REASON = 300
_FOREIGN = Sentence("its answer is not a chat message")
_DONE = b"[DONE]"
_LINE_END = re.compile(rb"\r\n|\r|\n")
# A byte-order mark, which is allowed at the start.
_MARK = b"\xef\xbb\xbf"


class ReadingError(PlatformError):
    """An unreadable answer; the message continues "there is no answer:"."""


def loads(data: bytes) -> Any:
    """Parse JSON that may contain lone surrogates; raises `ReadingError`."""
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise ReadingError(_FOREIGN) from None


def reply_of(answer: Any) -> str:
    """Return the reply of the simple protocol; raises `ReadingError`."""
    match answer:
        case {"reply": str(text)}:
            return text
    _raise_error(answer)
    raise ReadingError(_FOREIGN)


def completion_of(answer: Any) -> str:
    """Return the text of a complete chat completion; raises `ReadingError`."""
    _raise_error(answer)
    match answer:
        case {"choices": [{"message": {"content": content}}, *_]}:
            return _text(content)
    raise ReadingError(_FOREIGN)


def error_in(answer: Any) -> str:
    """The gateway's own error text, or empty."""
    match answer:
        case (
            {"error": {"message": str(reason)}}
            | {"error": str(reason)}
            | {"error": {"message": {"message": str(reason)}}}
            | {"detail": {"error": {"message": str(reason)}}}
            | {"detail": str(reason)}
            | {"message": str(reason)}
        ):
            line = " ".join(reason.split())
            return f"{line[:_LONGEST_REASON]}…" if len(line) > _LONGEST_REASON else line
    return ""


def streamed(pieces: Iterable[bytes], on_end: Callable[[], None]) -> Iterator[str]:
    """Yield the text of a stream of chat completion events (server-sent events) as it arrives.

    `on_end` is called when the model has finished; later data and errors are ignored. Raises
    `ReadingError`, also if the stream ends before that, and what reading `pieces` raises.
    """
    # A piece may end in the middle of a surrogate pair (UTF-16).
    utf_16 = getincrementaldecoder("utf-16-le")("replace")
    ended = False
    try:
        for data in _events(pieces):
            if data.strip() == _DONE:
                ended = True
                break
            content, ends = _delta(loads(data))
            if text := utf_16.decode(content.encode("utf-16-le", "surrogatepass")):
                yield text
            if ends and not ended:
                ended = True
                on_end()
    except PlatformError:
        if not ended:
            raise
    if text := utf_16.decode(b"", final=True):
        yield text
    if not ended:
        raise ReadingError(Sentence("its answer ended before it was complete"))


def _delta(event: Any) -> tuple[str, bool]:
    """The text that an event adds, and whether it is the last."""
    _raise_error(event)
    match event:
        case {"choices": [{**choice}, *_]}:
            pass
        case _:
            return "", False
    match choice:
        case {"delta": {"content": content}} | {"message": {"content": content}}:
            text = _text(content)
        case _:
            text = ""
    return text, bool(choice.get("finish_reason"))


def whole(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _text(content: Any) -> str:
    match content:
        case str():
            return content
        case None:
            return ""
        case list():
            parts = (part.get("text") for part in content if isinstance(part, dict))
            return "".join(part for part in parts if isinstance(part, str))
    raise ReadingError(_FOREIGN)


def _raise_error(answer: Any) -> None:
    if isinstance(answer, dict) and answer.get("error"):
        reason = error_in(answer)
        raise ReadingError(
            Sentence("it says: {why}", why=reason) if reason else Sentence("it reports an error")
        )


def _events(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data of each event; a blank line ends an event."""
    data: list[bytes] = []
    for line in _lines(pieces):
        if not line:
            if data:
                yield b"\n".join(data)
            data = []
            continue
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
    if data:
        # The last event may be cut off, or just lack its blank line.
        yield b"\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines that end in LF, CR or CRLF, whatever the pieces."""
    begun = bytearray()
    after_return, at_start = False, True
    for piece in pieces:
        # The LF of a CRLF whose line was already yielded.
        rest = piece[1:] if after_return and piece.startswith(b"\n") else piece
        if piece:
            after_return = rest.endswith(b"\r")
        *whole, rest = _LINE_END.split(rest)
        for line in whole:
            begun += line
            yield bytes(begun).removeprefix(_MARK) if at_start else bytes(begun)
            at_start = False
            begun.clear()
        begun += rest
    if begun:
        yield bytes(begun).removeprefix(_MARK) if at_start else bytes(begun)
