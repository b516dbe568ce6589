"""What gateways answer, as bytes that come in any pieces: read into text.

Nothing here does any IO. What is not text that a person can read becomes a
`ReadingError`, whose reason is told by who knows which gateway it was.
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
# A byte-order mark, which may stand at the beginning.
_MARK = b"\xef\xbb\xbf"


class ReadingError(PlatformError):
    """An answer that is none; the message goes on from "there is no answer:"."""


def loads(data: bytes) -> Any:
    """The JSON of a program that may write half a character; raises `ReadingError`."""
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise ReadingError(_FOREIGN) from None


def reply_of(answer: Any) -> str:
    """What a gateway of the simple protocol replied; raises `ReadingError`."""
    match answer:
        case {"reply": str(text)}:
            return text
    _raise_error(answer)
    raise ReadingError(_FOREIGN)


def completion_of(answer: Any) -> str:
    """What a whole chat completion says; raises `ReadingError`."""
    _raise_error(answer)
    match answer:
        case {"choices": [{"message": {"content": content}}, *_]}:
            return _text(content)
    raise ReadingError(_FOREIGN)


def error_in(answer: Any) -> str:
    """Why a gateway refuses, in its own words, as far as it says; else empty."""
    match answer:
        case {"error": {"message": str(reason)}} | {"error": str(reason)}:
            pass
        case {"error": {"message": {"message": str(reason)}}}:
            pass
        case {"detail": {"error": {"message": str(reason)}}} | {"detail": str(reason)}:
            pass
        case {"message": str(reason)}:
            pass
        case _:
            return ""
    line = " ".join(reason.split())
    return f"{line[:_LONGEST_REASON]}…" if len(line) > _LONGEST_REASON else line


def streamed(pieces: Iterable[bytes], on_end: Callable[[], None]) -> Iterator[str]:
    """The text in a stream of events (server-sent events of chat completions), as it comes.

    Once the model has ended, `on_end` is called: what may still come says nothing more, and
    whatever goes wrong there means nothing. Raises `ReadingError`, also when the stream
    breaks off before that, and what reading `pieces` raises.
    """
    # A piece may end in the middle of a character of two halves.
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
    """What an event adds to the answer, and whether the answer ends with it."""
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
    """`text` with two halves of a character as one, and a mark for a half alone."""
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
    """The data of each event: its lines of data, which a blank line ends."""
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
        # What is not followed by a blank line may be cut off, or just end so.
        yield b"\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that end in LF, CR or both, however the bytes come."""
    begun = bytearray()
    after_return, at_start = False, True
    for piece in pieces:
        # The other half of an end that is told already.
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
