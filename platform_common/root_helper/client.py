"""The root helper: named operations for programs that are not root, over a Unix socket.

One connection is one request: a line of JSON, `{"operation", "arguments"}`, after
which the caller sends no more. The last line of the answer is `{"result"}` or
`{"error": {"kind", "message", "hint"}}`. For a request with `"progress": true` lines
`{"progress"}` come before that, of what is done by then, and at least one in some
seconds, with null, as long as the helper is alive. systemd starts the helper for each
connection. Either end asks the kernel who the other is. How long a request may be, and
how long its answer may take, is each operation's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from platform_common.errors import PlatformError, UnreadableError, WrongUsageError
from platform_common.formats.decode import DecodingError, from_json, shaped
from platform_common.paths import CONTROL_SOCKET, Paths, Place
from platform_common.storage.file_lock import LockedError

T = TypeVar("T")
# All that may be told while an operation goes on, and how often the helper says something.
PROGRESS_LIMIT_BYTES = 256 << 10
BEAT_S = 4.0
_SILENCE_S = 20.0
_ANSWER_LIMIT_BYTES = 1 << 20
_ANSWER_TIMEOUT_S = 30.0
_SEE = "see why with: journalctl -u 'platform-control@*'"
_ROOT = 0
_CREDENTIALS = struct.Struct("3i")
# Which family an error belongs to outlives the way through the socket; the first that fits.
KINDS: Mapping[str, type[PlatformError]] = {
    "usage": WrongUsageError,
    "unreadable": UnreadableError,
    "busy": LockedError,
    "failed": PlatformError,
}


class Failure(Struct, frozen=True):
    """Why nothing, or not all, was done; `kind` is one of `KINDS`."""

    kind: str
    message: str
    hint: str = ""


class Answer(Struct, frozen=True):
    """The last line of an answer."""

    result: Any = None
    error: Failure | None = None


def socket_for(paths: Paths, *own: Place) -> Path | None:
    """The helper's socket, for who is not root and has none of `own` as a file of his own.

    None for anybody else, and where there is no helper that he may ask.
    """
    if os.geteuid() == _ROOT or any(paths.named(place.variable) for place in own):
        return None
    path = paths.writable(CONTROL_SOCKET)
    try:
        may_ask = path.is_socket() and os.access(path, os.W_OK, effective_ids=True)
    except OSError:
        return None
    return path if may_ask else None


def ask(
    path: Path,
    operation: str,
    arguments: Mapping[str, object],
    shape: type[T],
    *,
    timeout_s: float = _ANSWER_TIMEOUT_S,
    limit_bytes: int = _ANSWER_LIMIT_BYTES,
    tell: Callable[[Any], None] | None = None,
) -> T:
    """What the helper at the socket `path` answers; raises what the operation raised.

    `tell`, where it is given, hears what is done by then, as JSON has it. Also raises
    `UnreadableError` when the helper cannot be reached, is not root's, ends without an
    answer, is silent, or gives none in time.
    """
    request: dict[str, object] = {"operation": operation, "arguments": arguments}
    if tell is not None:
        request["progress"] = True
        limit_bytes += PROGRESS_LIMIT_BYTES
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            _send(connection, path, json.dumps(request).encode() + b"\n")
            silence_s = timeout_s if tell is None else _SILENCE_S
            lines = received(connection, limit_bytes, timeout_s, silence_s, "The answer")
            return _answer(lines, shape, path, tell)
    except DecodingError as error:
        raise UnreadableError(f"What the control helper answers is wrong: {error}") from None
    except OSError as error:
        raise UnreadableError.of(path, error) from None


def peer(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows it."""
    size = _CREDENTIALS.size
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    user: int = _CREDENTIALS.unpack(credentials)[1]
    return user


def received(
    connection: socket.socket, limit_bytes: int, timeout_s: float, silence_s: float, what: str
) -> Iterator[bytes]:
    """The lines that the other end sends until it ends its sending; the last may be torn.

    Raises `UnreadableError` when they are too long in all, or do not come in time.
    """
    deadline = time.monotonic() + timeout_s
    rest, total = b"", 0
    while True:
        left_s = min(deadline - time.monotonic(), silence_s)
        try:
            # 0 would mean not to wait, and is another error.
            connection.settimeout(max(left_s, 0.001))
            chunk = connection.recv(limit_bytes + 1)
        except TimeoutError:
            if time.monotonic() < deadline:
                raise _silent(silence_s) from None
            raise UnreadableError(f"{what} did not come in {timeout_s:g} s") from None
        if not chunk:
            break
        total += len(chunk)
        if total > limit_bytes:
            raise too_long(what, limit_bytes)
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def too_long(what: str, limit_bytes: int) -> UnreadableError:
    """The error for what is longer than it may be."""
    return UnreadableError(f"{what} is longer than {limit_bytes:,} bytes")


def _silent(silence_s: float) -> UnreadableError:
    return UnreadableError(
        f"The control helper has said nothing for {silence_s:g} s",
        hint=f"It may go on all the same: {_SEE}",
    )


def _send(connection: socket.socket, path: Path, request: bytes) -> None:
    connection.settimeout(_ANSWER_TIMEOUT_S)
    connection.connect(str(path))
    if peer(connection) != _ROOT:
        raise UnreadableError(f"{path} is not root's, so nothing is sent there")
    # A helper that ended early may have said why.
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)


def _answer(
    lines: Iterator[bytes], shape: type[T], path: Path, tell: Callable[[Any], None] | None
) -> T:
    # Who is one too many is sent away unread.
    for line in _until_reset(lines):
        tree = from_json(line, dict[str, Any])
        if "progress" not in tree:
            return _result(shaped(tree, Answer), shape)
        if tell is None:
            raise DecodingError("progress that nobody asked for")
        if tree["progress"] is not None:
            tell(tree["progress"])
    raise UnreadableError(
        f"The control helper at {path} gave no answer", hint=_SEE[0].upper() + _SEE[1:]
    )


def _until_reset(lines: Iterator[bytes]) -> Iterator[bytes]:
    with contextlib.suppress(ConnectionResetError):
        yield from lines


def _result(answer: Answer, shape: type[T]) -> T:
    if answer.error is None:
        return shaped(answer.result, shape)
    raise KINDS.get(answer.error.kind, PlatformError)(answer.error.message, hint=answer.error.hint)
