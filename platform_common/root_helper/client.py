"""The root helper: named operations for programs that are not root, over a Unix socket.

A connection carries one request: a line of JSON, `{"operation", "arguments"}`, after which
the caller sends no more. The last line of the answer is `{"result"}` or
`{"error": {"kind", "message", "hint"}}`. A request with `"progress": true` is answered with
lines `{"progress"}` before that one: reports of the operation, and null every few seconds as
long as the helper is alive. systemd starts a helper for each connection. Each end asks the
kernel who the other is. Every operation has its own limits of size and time.
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

from platform_common.errors import AccessError, PlatformError, WrongUsageError
from platform_common.formats.decode import DecodingError, from_json, shaped
from platform_common.paths import CONTROL_SOCKET, Paths, Place
from platform_common.storage.file_lock import LockedError

T = TypeVar("T")
OnProgress = Callable[[Any], None]
# The limit for all progress of an operation.
PROGRESS_LIMIT_BYTES = 256 << 10
ANSWER_LIMIT_BYTES = 1 << 20
_SILENCE_S = 20.0
_ANSWER_TIMEOUT_S = 30.0
_SEE = "see why with: journalctl -u 'platform-control@*'"
_ROOT = 0
_CREDENTIALS = struct.Struct("3i")
# The class of an error is sent by name; the first matching one counts.
KINDS: Mapping[str, type[PlatformError]] = {
    "usage": WrongUsageError,
    "unreadable": AccessError,
    "busy": LockedError,
    "failed": PlatformError,
}


class Failure(Struct, frozen=True):
    """Why nothing, or not everything, was done; `kind` is one of `KINDS`."""

    kind: str
    message: str
    hint: str = ""


class Answer(Struct, frozen=True):
    """The last line of an answer."""

    result: Any = None
    error: Failure | None = None


def socket_for(paths: Paths, *own: Place) -> Path | None:
    """The helper's socket; None for root, if a path of `own` is overridden, or without a helper.

    Also None for a user who may not open the socket.
    """
    if os.geteuid() == _ROOT or any(paths.named(place.variable) for place in own):
        return None
    path = paths.path_of(CONTROL_SOCKET)
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
    limit_bytes: int = ANSWER_LIMIT_BYTES,
    on_progress: OnProgress | None = None,
) -> T:
    """Send a request to the helper at the socket `path`; raises what the operation raised.

    `on_progress` is called with each report, as parsed JSON. Also raises `AccessError` if the
    helper cannot be reached, is not root's, is silent, or does not answer in time.
    """
    request: dict[str, object] = {"operation": operation, "arguments": arguments}
    silence_s = timeout_s
    if on_progress is not None:
        request["progress"] = True
        limit_bytes += PROGRESS_LIMIT_BYTES
        silence_s = _SILENCE_S
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            _send(connection, path, json.dumps(request).encode() + b"\n")
            lines = received(connection, limit_bytes, timeout_s, silence_s, "The answer")
            return _answer(lines, shape, path, on_progress)
    except DecodingError as error:
        raise AccessError(f"The answer of the root helper is not valid: {error}") from None
    except OSError as error:
        raise AccessError.of(path, error) from None


def peer(connection: socket.socket) -> int:
    """The user at the other end, according to the kernel."""
    size = _CREDENTIALS.size
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    user: int = _CREDENTIALS.unpack(credentials)[1]
    return user


def received(
    connection: socket.socket, limit_bytes: int, timeout_s: float, silence_s: float, what: str
) -> Iterator[bytes]:
    """Yield lines until the other end shuts down its sending side; the last may be torn.

    Raises `AccessError` if they are too long in all, or do not arrive in time.
    """
    deadline = time.monotonic() + timeout_s
    rest, total = b"", 0
    while True:
        left_s = min(deadline - time.monotonic(), silence_s)
        try:
            # Zero would make the socket non-blocking.
            connection.settimeout(max(left_s, 0.001))
            chunk = connection.recv(limit_bytes + 1)
        except TimeoutError:
            if time.monotonic() < deadline:
                raise AccessError(
                    f"The root helper has said nothing for {silence_s:g} s",
                    hint=f"It may still be running: {_SEE}",
                ) from None
            raise AccessError(f"{what} did not arrive within {timeout_s:g} s") from None
        if not chunk:
            break
        total += len(chunk)
        if total > limit_bytes:
            raise too_long(what, limit_bytes)
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def too_long(what: str, limit_bytes: int) -> AccessError:
    """The error for a message beyond its limit."""
    return AccessError(f"{what} is longer than {limit_bytes:,} bytes")


def _send(connection: socket.socket, path: Path, request: bytes) -> None:
    connection.settimeout(_ANSWER_TIMEOUT_S)
    connection.connect(str(path))
    if peer(connection) != _ROOT:
        raise AccessError(f"{path} is not root's, so nothing is sent there")
    # A helper that ended early may have said why.
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)


def _answer(
    lines: Iterator[bytes], shape: type[T], path: Path, on_progress: OnProgress | None
) -> T:
    # systemd resets excess connections.
    with contextlib.suppress(ConnectionResetError):
        for line in lines:
            tree = from_json(line, dict[str, Any])
            if "progress" not in tree:
                return _result(shaped(tree, Answer), shape)
            if on_progress is None:
                raise DecodingError("unrequested progress")
            if tree["progress"] is not None:
                on_progress(tree["progress"])
    raise AccessError(f"The root helper at {path} gave no answer", hint=_SEE[0].upper() + _SEE[1:])


def _result(answer: Answer, shape: type[T]) -> T:
    if answer.error is None:
        return shaped(answer.result, shape)
    raise KINDS.get(answer.error.kind, PlatformError)(answer.error.message, hint=answer.error.hint)
