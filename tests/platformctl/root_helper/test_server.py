"""The root helper's connection: progress reports during an operation."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from platform_common.errors import AccessError, PlatformError
from platform_common.paths import Paths
from platform_common.root_helper import client as control_helper
from platform_common.root_helper.client import PROGRESS_LIMIT_BYTES, OnProgress, ask
from platformctl.root_helper import server as control_serving
from platformctl.root_helper.operations import OPERATIONS, find_operation
from platformctl.root_helper.remote_operation import Nothing, RemoteOperation
from platformctl.root_helper.server import serve

CANARY = "sk-canary-0123456789"
MUCH = b'{"progress": "%s"}\n' % (b"x" * 999) * 5_000
Run = Callable[[Paths, Any, OnProgress], object]


@pytest.fixture(autouse=True)
def _trust_the_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    # Only a helper that runs as root is trusted; in these tests, one of the user who runs them.
    monkeypatch.setattr(control_helper, "_ROOT", os.geteuid())


class Served:
    """A helper in a thread that answers one connection; `said` is its log."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.path = folder / "s"
        self.said = ""
        self._operations = {"do": RemoteOperation("do", Nothing, object, run, changes=True)}
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self.path))
        self._server.listen()
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        with self._server, self._server.accept()[0] as connection:
            users = [os.geteuid()]
            self.said = serve(connection, self._operations.get, Paths(Path("/"), {}), users=users)

    def connect(self, *, progress: bool) -> socket.socket:
        """Open a connection and request `do` on it."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20)
        connection.connect(str(self.path))
        request: Mapping[str, object] = {"operation": "do", "arguments": {}, "progress": progress}
        connection.sendall(json.dumps(request).encode() + b"\n")
        connection.shutdown(socket.SHUT_WR)
        return connection


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[Run], Served]]:
    with contextlib.ExitStack() as ended:

        def start(run: Run) -> Served:
            found = Served(tmp_path, run)
            ended.callback(found.thread.join, 20)
            return found

        yield start


def lines_of(connection: socket.socket) -> list[dict[str, Any]]:
    """All received lines, each parsed as an object."""
    data = b"".join(iter(lambda: connection.recv(65536), b""))
    return [json.loads(line) for line in data.splitlines()]


def counting(to: int) -> Run:
    """An operation that reports every number below `to` as progress, and returns `to`."""

    def run(paths: Paths, asked: Nothing, on_progress: OnProgress) -> int:
        for number in range(to):
            on_progress(number)
        return to

    return run


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_found_by_its_name(name: str) -> None:
    operation = find_operation(name)
    assert operation is not None
    assert operation.name == name


def test_progress_is_reported_before_the_answer(served: Callable[[Run], Served]) -> None:
    told: list[Any] = []
    assert ask(served(counting(3)).path, "do", {}, int, on_progress=told.append) == 3
    assert told == [0, 1, 2]


def test_a_caller_without_progress_gets_one_line(served: Callable[[Run], Served]) -> None:
    with served(counting(3)).connect(progress=False) as connection:
        assert lines_of(connection) == [{"result": 3, "error": None}]


def test_a_caller_that_does_not_read_does_not_block_the_operation(
    served: Callable[[Run], Served],
) -> None:
    done = threading.Event()

    def run(paths: Paths, asked: Nothing, on_progress: OnProgress) -> str:
        for number in range(50_000):
            on_progress({"number": number, "said": "x" * 50})
        done.set()
        return "the end"

    helper = served(run)
    with helper.connect(progress=True) as connection:
        assert done.wait(60)
        *told, last = lines_of(connection)
    # The received lines are complete and bounded; a slow machine also sends heartbeats.
    numbers = [one["progress"]["number"] for one in told if one["progress"] is not None]
    assert numbers == list(range(len(numbers)))
    assert numbers
    assert len(json.dumps(told)) < 2 * PROGRESS_LIMIT_BYTES
    assert last["result"] == "the end"


def test_a_caller_that_leaves_does_not_stop_the_operation(served: Callable[[Run], Served]) -> None:
    gone, done = threading.Event(), []

    def run(paths: Paths, asked: Nothing, on_progress: OnProgress) -> None:
        assert gone.wait(20)
        for number in range(1000):
            on_progress(number)
            done.append(number)

    helper = served(run)
    helper.connect(progress=True).close()
    gone.set()
    helper.thread.join(20)
    assert len(done) == 1000
    assert helper.said == f"change: do by user {os.geteuid()}: done"


def test_a_silent_helper_that_still_runs_is_not_taken_for_dead(
    served: Callable[[Run], Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_serving, "_BEAT_S", 0.05)
    monkeypatch.setattr(control_helper, "_SILENCE_S", 3.0)

    def run(paths: Paths, asked: Nothing, on_progress: OnProgress) -> str:
        time.sleep(3.5)
        return "slow"

    told: list[Any] = []
    assert ask(served(run).path, "do", {}, str, on_progress=told.append) == "slow"
    assert told == []


@pytest.mark.parametrize(
    ("sent", "closes", "reason"),
    [
        pytest.param(b'{"progress": 1}\n', True, "gave no answer", id="dead"),
        pytest.param(b'{"progress": 1}\n', False, "has said nothing for 0.3 s", id="silent"),
        pytest.param(b'{"progress": 1}\n{"res', True, "is not valid", id="torn"),
        pytest.param(b"{}\n", True, "is not valid", id="empty-object"),
        pytest.param(b"[]\n", True, "is not valid", id="not-an-object"),
        pytest.param(MUCH, True, "longer than", id="endless"),
    ],
)
def test_a_silent_helper_and_a_closed_connection_have_different_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes, closes: bool, reason: str
) -> None:
    monkeypatch.setattr(control_helper, "_SILENCE_S", 20 if closes else 0.3)
    ended = threading.Event()
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s"))
    server.listen()

    def answer() -> None:
        with server, server.accept()[0] as connection:
            while connection.recv(65536):
                pass
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(sent)
            if not closes:
                ended.wait(20)

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises(AccessError, match=reason):
        ask(tmp_path / "s", "do", {}, int, on_progress=lambda _: None)
    ended.set()
    thread.join(20)


def test_leak_01_an_internal_error_of_the_helper_is_reported_without_its_text(
    served: Callable[[Run], Served],
) -> None:
    def run(paths: Paths, asked: Nothing, on_progress: OnProgress) -> None:
        raise RuntimeError(CANARY)

    helper = served(run)
    with pytest.raises(PlatformError) as caught:
        ask(helper.path, "do", {}, int)
    helper.thread.join(20)
    assert caught.value.message == "The root helper failed: RuntimeError"
    assert CANARY not in helper.said


def test_a_name_that_is_not_utf_8_can_be_reported(served: Callable[[Run], Served]) -> None:
    def run(paths: Paths, asked: Nothing, on_progress: OnProgress) -> None:
        on_progress("\udc80")
        raise PlatformError("/etc/\udc80: no such file")

    helper = served(run)
    with pytest.raises(PlatformError, match=r"/etc/\\udc80: no such file"):
        ask(helper.path, "do", {}, int, on_progress=lambda _: None)
