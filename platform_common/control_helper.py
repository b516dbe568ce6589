"""The root helper: named operations for programs that are not root, over a Unix socket.

One connection is one request: a line of JSON, `{"operation", "arguments"}`, after
which the caller sends no more, then an answer, `{"result"}` or `{"error": {"kind",
"message", "hint"}}`. systemd starts the helper for each connection. Either end
asks the kernel who the other is. How long a request may be, and how long its answer
may take, is each operation's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from platform_common.decoding import DecodingError, from_json, shaped
from platform_common.errors import PlatformError, UnreadableError, WrongUsageError
from platform_common.locks import LockedError
from platform_common.paths import CONTROL_SOCKET, Paths, Place

T = TypeVar("T")
_REQUEST_LIMIT_BYTES = 16 << 10
_ANSWER_LIMIT_BYTES = 1 << 20
_REQUEST_TIMEOUT_S = 5.0
_ANSWER_TIMEOUT_S = 30.0
_ROOT = 0
_CREDENTIALS = struct.Struct("3i")
# Which family an error belongs to outlives the way through the socket; the first that fits.
_KINDS: Mapping[str, type[PlatformError]] = {
    "usage": WrongUsageError,
    "unreadable": UnreadableError,
    "busy": LockedError,
    "failed": PlatformError,
}


class Operation(NamedTuple):
    """What a request may ask for: the shape of its arguments, and the function for them.

    `limit_bytes` is how long the request may be.
    """

    shape: type[Any]
    run: Callable[[Paths, Any], object]
    limit_bytes: int = _REQUEST_LIMIT_BYTES


class _Request(Struct, frozen=True, forbid_unknown_fields=True):
    operation: str
    arguments: dict[str, Any]


class _Failure(Struct, frozen=True):
    kind: str
    message: str
    hint: str = ""


class _Answer(Struct, frozen=True):
    result: Any = None
    error: _Failure | None = None


def socket_for(paths: Paths, *own: Place) -> Path | None:
    """The helper's socket, for who is not root and has none of `own` as a file of his own.

    None for anybody else, and where there is no helper.
    """
    if os.geteuid() == 0 or any(paths.named(place.variable) for place in own):
        return None
    path = paths.writable(CONTROL_SOCKET)
    return path if path.is_socket() else None


def ask(
    path: Path,
    operation: str,
    arguments: Mapping[str, object],
    shape: type[T],
    *,
    timeout_s: float = _ANSWER_TIMEOUT_S,
) -> T:
    """What the helper at the socket `path` answers; raises what the operation raised.

    Also `UnreadableError` when it cannot be reached, is not root's, or gives no answer
    in time.
    """
    request = {"operation": operation, "arguments": arguments}
    try:
        data = _exchange(path, json.dumps(request).encode() + b"\n", timeout_s)
    except OSError as error:
        raise UnreadableError.of(path, error) from None
    if not data:
        raise UnreadableError(
            f"The control helper at {path} gave no answer",
            hint="See why with: journalctl -u 'platform-control@*'",
        )
    try:
        answer = from_json(data, _Answer)
        if answer.error is None:
            return shaped(answer.result, shape)
    except DecodingError as error:
        raise UnreadableError(f"What the control helper answers is wrong: {error}") from None
    raise _KINDS.get(answer.error.kind, PlatformError)(answer.error.message, hint=answer.error.hint)


def serve(
    connection: socket.socket,
    operations: Mapping[str, Operation],
    paths: Paths,
    *,
    users: Collection[int],
) -> str:
    """Answer one request of root or one of `users`; returns a line for the log."""
    user = _peer(connection)
    name = "request"
    try:
        # Who is refused would not see the answer behind what nobody read.
        longest = max(operation.limit_bytes for operation in operations.values())
        data = _receive(connection, longest, _REQUEST_TIMEOUT_S, "The request")
        if user not in (_ROOT, *users):
            raise PlatformError("This user may not use the control helper")
        request = _request(data)
        operation = operations.get(request.operation)
        if operation is None:
            raise PlatformError(f"The control helper has no operation {request.operation!a}")
        if len(data) > operation.limit_bytes:
            raise _too_long("The request", operation.limit_bytes)
        name = request.operation
        done = operation.run(paths, shaped(request.arguments, operation.shape))
        answer, outcome = _Answer(result=done), "done"
    except OSError as error:
        answer, outcome = _refusal(UnreadableError.of(error.filename or "the connection", error))
    except PlatformError as error:
        answer, outcome = _refusal(error)
    with contextlib.suppress(OSError):
        connection.settimeout(_REQUEST_TIMEOUT_S)
        connection.sendall(msgspec.json.encode(answer) + b"\n")
    return f"{name} by user {user}: {outcome}"


def _exchange(path: Path, request: bytes, timeout_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_TIMEOUT_S)
        connection.connect(str(path))
        if _peer(connection) != _ROOT:
            raise UnreadableError(f"{path} is not root's, so nothing is sent there")
        # A helper that ended early may have said why.
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        return _receive(connection, _ANSWER_LIMIT_BYTES, timeout_s, "The answer")


def _request(data: bytes) -> _Request:
    if data.count(b"\n") != 1 or not data.endswith(b"\n"):
        raise PlatformError("The request is not one line")
    return from_json(data, _Request)


def _receive(connection: socket.socket, limit_bytes: int, timeout_s: float, what: str) -> bytes:
    """All that the other end sends before it ends its sending; raises `UnreadableError`."""
    deadline = time.monotonic() + timeout_s
    data = bytearray()
    while len(data) <= limit_bytes:
        left_s = deadline - time.monotonic()
        try:
            # 0 would mean not to wait, and is another error.
            connection.settimeout(max(left_s, 0.001))
            chunk = connection.recv(limit_bytes + 1)
        except TimeoutError:
            raise UnreadableError(f"{what} did not come in {timeout_s:g} s") from None
        if not chunk:
            return bytes(data)
        data += chunk
    raise _too_long(what, limit_bytes)


def _too_long(what: str, limit_bytes: int) -> UnreadableError:
    return UnreadableError(f"{what} is longer than {limit_bytes:,} bytes")


def _peer(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows it."""
    size = _CREDENTIALS.size
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    user: int = _CREDENTIALS.unpack(credentials)[1]
    return user


def _refusal(error: PlatformError) -> tuple[_Answer, str]:
    kind = next(kind for kind, family in _KINDS.items() if isinstance(error, family))
    return _Answer(error=_Failure(kind, error.message, error.hint)), error.message
