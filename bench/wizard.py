"""Measures `wizard-app serve` against a bare Flask app under the same gunicorn."""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import socket
import statistics
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.measuring import Row, program
from bench.serving import ROOT, Server, ask, gunicorn, p95, p99, serving

PAGE = "/wizard/system"
POSTS = 400
REQUESTS = 10_000
STARTS = 7
KEY_TESTS = 4
_BARE = gunicorn("bench.bare:bare()")
_KEY_TEST_S = 10
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Visitor:
    """A browser that keeps one connection and its session."""

    def __init__(self, server: Server, token: str = "") -> None:
        self._connection = server.connect()
        self.headers: dict[str, str] = {}
        if token:
            self.headers = _session(server, token)

    def post(self, path: str, fields: Mapping[str, str]) -> float:
        """The time of a form; anything but a redirect is an error."""
        body = urllib.parse.urlencode(fields)
        began = time.perf_counter()
        self._connection.request("POST", path, body, self.headers | _FORM)
        answer = self._connection.getresponse()
        answer.read()
        taken = time.perf_counter() - began
        if answer.status != 302:
            raise SystemExit(f"POST {path} answered {answer.status}")
        return taken

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _session(server: Server, token: str) -> dict[str, str]:
    """The headers of the session that a launch token begins."""
    with contextlib.closing(server.connect()) as connection:
        connection.request("GET", PAGE, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        cookie = answer.headers["Set-Cookie"] or ""
    return {"Cookie": cookie.partition(";")[0]}


@contextlib.contextmanager
def wizard(folder: Path, **variables: str) -> Iterator[tuple[Server, str]]:
    """A wizard that sets up `folder` in dev mode, and its launch token."""
    token = secrets.token_hex(32)
    environment = {"WIZARD_DEV_OUT": str(folder), "WIZARD_TOKEN": token} | variables
    with serving([program("wizard-app"), "serve"], **environment) as server:
        yield server, token


def posting(folder: Path, runs: int) -> Iterator[Row]:
    """A step's answer, stored durably: on a disk, and in memory, where no disk hides the work."""
    in_memory = p95s(folder)
    with tempfile.TemporaryDirectory(dir=_disk(), prefix="bench-") as name:
        ours, theirs = p95s(Path(name))
    what = "a step's answer stored on the disk, 95 of 100, against a bare form with the same write"
    detail = f"{_milliseconds(ours, theirs)}; in memory {_milliseconds(*in_memory)}"
    yield Row(what, ours / theirs, "x", 1.5, detail)


def _milliseconds(ours: float, theirs: float) -> str:
    return f"{ours * 1000:.1f} ms against {theirs * 1000:.1f} ms"


def _disk() -> Path:
    """A folder on the disk of the checkout."""
    folder = ROOT / "dev-out"
    folder.mkdir(exist_ok=True)
    return folder


def p95s(folder: Path) -> tuple[float, float]:
    """The time of a form that is stored in `folder`: the wizard's, and a bare one."""
    fields = {"hostname": "kitchen-agent", "timezone": "Europe/Berlin"}
    state = folder / "bare/state.json"
    state.parent.mkdir()
    with (
        wizard(folder / "wizard") as (server, token),
        serving(_BARE, BARE_STATE_FILE=str(state)) as bare,
        contextlib.closing(Visitor(server, token)) as visitor,
        contextlib.closing(Visitor(bare)) as other,
    ):
        ours, theirs = [], []
        for number in range(POSTS):
            # A different answer each time, so that it must be written.
            changed = fields | {"hostname": f"agent-{number}"}
            ours.append(visitor.post(PAGE, changed))
            theirs.append(other.post("/form", changed))
    return p95(ours), p95(theirs)


def starting(folder: Path, runs: int) -> Iterator[Row]:
    """From the start of the process to the first answer of `/healthz`."""
    environment = {"WIZARD_DEV_OUT": str(folder), "WIZARD_NO_TOKEN": "1"}
    ours, theirs = [], []
    for _ in range(max(runs, STARTS)):
        ours.append(_start([program("wizard-app"), "serve"], environment))
        theirs.append(_start(_BARE, {}))
    first, second = statistics.median(ours), statistics.median(theirs)
    what = "from the start to the first answer of /healthz, against a bare Flask app"
    yield Row(what, first / second, "x", 1.6, f"{first:.3f} s against {second:.3f} s")


def _start(command: list[str], environment: Mapping[str, str]) -> float:
    began = time.perf_counter()
    with serving(command, **environment):
        return time.perf_counter() - began


def memory(folder: Path, runs: int) -> Iterator[Row]:
    """Memory of fresh servers after many requests for a page of that size."""
    with wizard(folder) as (server, token):
        session = _session(server, token)
        size = len(server.get(PAGE, session))
        headers = [word for item in session.items() for word in ("--header", ": ".join(item))]
        ask(server, PAGE, REQUESTS * 3 // 4, *headers)
        before = server.memory_mib()
        ask(server, PAGE, REQUESTS // 4, *headers)
        after = server.memory_mib()
    with serving(_BARE, BARE_PAGE_BYTES=str(size)) as bare:
        ask(bare, "/page", REQUESTS)
        bare_mib = bare.memory_mib()
    what = f"memory of the wizard after {REQUESTS:,} requests, against a bare Flask app"
    yield Row(what, after / bare_mib, "x", 1.5, f"{after:.1f} MiB against {bare_mib:.1f} MiB")
    yield Row("its growth in the last quarter of them", after - before, "MiB", 1, "")


def key_tests(folder: Path, runs: int) -> Iterator[Row]:
    """Four key tests that wait for a silent server, and what others notice of them."""
    with silent_server() as (port, taken):
        (folder / "device").mkdir()
        providers = folder / "device/providers.json"
        providers.write_text(json.dumps({"providers": [_provider(port)]}))
        with wizard(folder / "wizard", PLATFORM_PROVIDERS_FILE=str(providers)) as (server, token):
            session = _session(server, token)
            rest = {path: _asked(server, path, session, 2) for path in ("/healthz", PAGE)}
            with _testing(server, session):
                _until(lambda: len(taken) == KEY_TESTS)
                busy = {path: _asked(server, path, session, 3) for path in rest}
                if len(taken) != KEY_TESTS:
                    raise SystemExit("the key tests did not wait")
            # Once more, so that a change in the machine's speed affects both.
            for path, before in rest.items():
                before.extend(_asked(server, path, session, 2))
    for path, at_rest in rest.items():
        first, second = p99(busy[path]), p99(at_rest)
        detail = f"{first * 1000:.1f} ms against {second * 1000:.1f} ms, {len(busy[path])} asked"
        what = f"{path}, 99 of 100, while {KEY_TESTS} keys are tested, against at rest"
        yield Row(what, first / second, "x", 1.5, detail)


def _provider(port: int) -> dict[str, str]:
    return {
        "id": "silent",
        "display_name": "Silent",
        "kind": "chat-compatible",
        "endpoint_default": f"http://127.0.0.1:{port}/v1",
        "key_env_var": "SILENT_API_KEY",
        "key_format": "anything",
    }


@contextlib.contextmanager
def silent_server() -> Iterator[tuple[int, list[socket.socket]]]:
    """The port of a server that accepts connections and sends nothing, and its connections."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening, contextlib.ExitStack() as stack:

        def take() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(stack.enter_context(listening.accept()[0]))

        thread = threading.Thread(target=take)
        thread.start()
        try:
            yield listening.getsockname()[1], taken
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextlib.contextmanager
def _testing(server: Server, session: Mapping[str, str]) -> Iterator[None]:
    """Run key tests for the block, and wait for their end."""
    body = urllib.parse.urlencode({"provider": "silent", "api_key": "sk-0123456789abcdef"})

    def test() -> None:
        with contextlib.closing(server.connect()) as connection:
            connection.request("POST", "/wizard/provider", body, {**session, **_FORM})
            with contextlib.suppress(http.client.HTTPException, OSError):
                connection.getresponse().read()

    threads = [threading.Thread(target=test) for _ in range(KEY_TESTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join(2 * _KEY_TEST_S)


def _until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _KEY_TEST_S / 2
    while not reached():
        if time.monotonic() > deadline:
            raise SystemExit("the key tests did not begin")
        time.sleep(0.01)


def _asked(server: Server, path: str, session: Mapping[str, str], seconds: float) -> list[float]:
    """The time of each answer, requested one after the other for some seconds."""
    taken = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        taken.append(server.seconds(path, session))
    return taken


def parts(folder: Path, runs: int) -> list[Callable[[], Iterator[Row]]]:
    """The parts of this bench, each of which may fill `folder`."""
    return [
        lambda part=part: part(folder, runs)  # type: ignore[misc]  # a default holds the part
        for part in (posting, starting, memory, key_tests)
    ]
