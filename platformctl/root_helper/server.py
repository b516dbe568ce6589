"""The server side of a helper connection: checks, runs and answers one request."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from platform_common.errors import AccessError, PlatformError
from platform_common.formats.decode import from_json, shaped
from platform_common.paths import Paths
from platform_common.root_helper.client import (
    KINDS,
    PROGRESS_LIMIT_BYTES,
    Answer,
    Failure,
    peer,
    received,
    too_long,
)
from platformctl.root_helper.remote_operation import LARGEST_REQUEST_BYTES, RemoteOperation

_REQUEST_TIMEOUT_S = 5.0
_ROOT = 0
# How often a caller who wants progress gets a sign of life.
_BEAT_S = 4.0
# How many characters of the caller's text, and of an error, are logged.
_LONGEST_NAME, _LONGEST_OUTCOME = 80, 600


class _Request(Struct, frozen=True, forbid_unknown_fields=True):
    operation: str
    arguments: dict[str, Any]
    progress: bool = False


class _Done(NamedTuple):
    """An answer, and its text for the log."""

    answer: Answer
    said: str


def serve(
    connection: socket.socket,
    find_operation: Callable[[str], RemoteOperation[Any, Any] | None],
    paths: Paths,
    *,
    users: Collection[int],
) -> str:
    """Answer one request of root or one of `users`; returns a line for the log."""
    user = peer(connection)
    what, reporter = "refused: request", _Reporter(connection)
    try:
        # If request bytes stay unread, the kernel resets the connection and drops the answer.
        data = _received(connection)
        if user not in (_ROOT, *users):
            raise PlatformError("This user may not use the root helper")
        request = _request(data)
        operation = find_operation(request.operation)
        if operation is None:
            name = request.operation[:_LONGEST_NAME]
            raise PlatformError(f"The root helper has no operation {name!a}")
        if len(data) > operation.request_limit_bytes:
            raise too_long("The request", operation.request_limit_bytes)
        arguments = shaped(request.arguments, operation.arguments)
        what = f"{'change' if operation.changes else 'read'}: {request.operation}"
        with reporter.beating() if request.progress else contextlib.nullcontext():
            done = _Done(Answer(operation.run(paths, arguments, reporter)), "done")
    except OSError as error:
        done = _refused(AccessError.of(error.filename or "the connection", error))
    except PlatformError as error:
        done = _refused(error)
    except Exception as error:  # noqa: BLE001 - its text may hold a secret of the request
        done = _refused(PlatformError(f"The root helper failed: {type(error).__name__}"))
    reporter.end(done.answer)
    return f"{what} by user {user}: {done.said}"


class _Reporter:
    """Sends progress to the caller; it never blocks an operation or makes it fail."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._wanted = False
        self._left_bytes = PROGRESS_LIMIT_BYTES
        # Not sent yet. A line is sent completely or not at all.
        self._unsent = bytearray()

    def __call__(self, progress: object) -> None:
        """Send `progress` if it was requested and the buffer has room."""
        with self._lock, contextlib.suppress(OSError, ValueError):
            if not self._wanted:
                return
            line = msgspec.json.encode({"progress": progress}) + b"\n"
            if len(line) <= self._left_bytes:
                self._left_bytes -= len(line)
                self._unsent += line
            self._send()

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """Send progress and regular signs of life until the block ends."""
        self._wanted, ended = True, threading.Event()
        self._connection.setblocking(False)

        def beat() -> None:
            while not ended.wait(_BEAT_S):
                self(None)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def end(self, answer: Answer) -> None:
        """Send the answer, as far as the caller reads it."""
        with contextlib.suppress(OSError):
            self._connection.settimeout(_REQUEST_TIMEOUT_S)
            self._connection.sendall(bytes(self._unsent) + msgspec.json.encode(answer) + b"\n")

    def _send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            del self._unsent[: self._connection.send(self._unsent)]


def _received(connection: socket.socket) -> bytes:
    timeout_s = _REQUEST_TIMEOUT_S
    return b"".join(
        received(connection, LARGEST_REQUEST_BYTES, timeout_s, timeout_s, "The request")
    )


def _request(data: bytes) -> _Request:
    if data.count(b"\n") != 1 or not data.endswith(b"\n"):
        raise PlatformError("The request is not a single line")
    return from_json(data, _Request)


def _refused(error: PlatformError) -> _Done:
    kind = next(kind for kind, family in KINDS.items() if isinstance(error, family))
    # A file name may contain bytes that are not UTF-8.
    message, hint = (
        text.encode("utf-8", "backslashreplace").decode() for text in (error.message, error.hint)
    )
    return _Done(Answer(error=Failure(kind, message, hint)), message[:_LONGEST_OUTCOME])
