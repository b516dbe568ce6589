"""The root helper's own end of a connection: one request, looked at, done and answered."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from platform_common.errors import PlatformError, UnreadableError
from platform_common.formats.decode import from_json, shaped
from platform_common.paths import Paths
from platform_common.root_helper.client import (
    BEAT_S,
    KINDS,
    PROGRESS_LIMIT_BYTES,
    Answer,
    Failure,
    peer,
    received,
    too_long,
)

# Says what is done by now to a caller who wants to know; never waits, and never fails.
Tell = Callable[[object], None]
_REQUEST_LIMIT_BYTES = 16 << 10
_REQUEST_TIMEOUT_S = 5.0
_ROOT = 0
# What of a caller's words, and of an error's, goes to the log.
_LONGEST_NAME, _LONGEST_OUTCOME = 80, 600


class Operation(NamedTuple):
    """What a request may ask for: the shape of its arguments, and the function for them.

    `changes` says in the log whether anything becomes another by it; `limit_bytes` is how
    long the request may be.
    """

    shape: type[Any]
    run: Callable[[Paths, Any, Tell], object]
    changes: bool
    limit_bytes: int = _REQUEST_LIMIT_BYTES


class _Request(Struct, frozen=True, forbid_unknown_fields=True):
    operation: str
    arguments: dict[str, Any]
    progress: bool = False


class _Done(NamedTuple):
    """An answer, and what the log says of it."""

    answer: Answer
    said: str


def serve(
    connection: socket.socket,
    operations: Mapping[str, Operation],
    paths: Paths,
    *,
    users: Collection[int],
) -> str:
    """Answer one request of root or one of `users`; returns a line for the log."""
    user = peer(connection)
    what, teller = "refused: request", _Teller(connection)
    try:
        # Who is refused would not see the answer behind what nobody read.
        data = _received(connection, max(one.limit_bytes for one in operations.values()))
        if user not in (_ROOT, *users):
            raise PlatformError("This user may not use the control helper")
        request = _request(data)
        operation = _named(operations, request.operation)
        if len(data) > operation.limit_bytes:
            raise too_long("The request", operation.limit_bytes)
        arguments = shaped(request.arguments, operation.shape)
        what = f"{'change' if operation.changes else 'read'}: {request.operation}"
        with teller.beating() if request.progress else contextlib.nullcontext():
            done = _Done(Answer(operation.run(paths, arguments, teller)), "done")
    except OSError as error:
        done = _refused(UnreadableError.of(error.filename or "the connection", error))
    except PlatformError as error:
        done = _refused(error)
    except Exception as error:  # noqa: BLE001 - what it says may hold a secret of the request
        done = _refused(PlatformError(f"The control helper failed: {type(error).__name__}"))
    teller.end(done.answer)
    return f"{what} by user {user}: {done.said}"


class _Teller:
    """Tells the caller how far it is, as long as he reads; an operation never waits for that."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._wanted = False
        self._left_bytes = PROGRESS_LIMIT_BYTES
        # What the connection did not take yet: a line is sent whole, or not at all.
        self._unsent = bytearray()

    def __call__(self, progress: object) -> None:
        """Say this, if it is wanted and there is room for it."""
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
        """Have progress told until the block ends, and that we are alive where there is none."""
        self._wanted, ended = True, threading.Event()
        self._connection.setblocking(False)

        def beat() -> None:
            while not ended.wait(BEAT_S):
                self(None)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def end(self, answer: Answer) -> None:
        """Send the answer, as far as the caller takes it."""
        with contextlib.suppress(OSError):
            self._connection.settimeout(_REQUEST_TIMEOUT_S)
            self._connection.sendall(bytes(self._unsent) + msgspec.json.encode(answer) + b"\n")

    def _send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            del self._unsent[: self._connection.send(self._unsent)]


def _received(connection: socket.socket, limit_bytes: int) -> bytes:
    timeout_s = _REQUEST_TIMEOUT_S
    return b"".join(received(connection, limit_bytes, timeout_s, timeout_s, "The request"))


def _request(data: bytes) -> _Request:
    if data.count(b"\n") != 1 or not data.endswith(b"\n"):
        raise PlatformError("The request is not one line")
    return from_json(data, _Request)


def _named(operations: Mapping[str, Operation], name: str) -> Operation:
    operation = operations.get(name)
    if operation is None:
        raise PlatformError(f"The control helper has no operation {name[:_LONGEST_NAME]!a}")
    return operation


def _refused(error: PlatformError) -> _Done:
    kind = next(kind for kind, family in KINDS.items() if isinstance(error, family))
    # A name of a file may hold what no text is.
    message, hint = (
        text.encode("utf-8", "backslashreplace").decode() for text in (error.message, error.hint)
    )
    return _Done(Answer(error=Failure(kind, message, hint)), message[:_LONGEST_OUTCOME])
