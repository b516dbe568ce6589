"""Apps under gunicorn with our settings, and clients that measure them."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.measuring import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[1]


class Server:
    """A program that serves on a loopback port; `command` lacks only the address."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        self.process = subprocess.Popen(
            [*command, "--bind", f"127.0.0.1:{self.port}"],
            cwd=ROOT,
            env=ENVIRONMENT | dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            start_new_session=True,
        )

    def connect(self) -> http.client.HTTPConnection:
        """A connection that is not open yet."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> bytes:
        """The body of a page; any status but 200 is an error."""
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", path, headers=dict(headers or {}))
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise SystemExit(f"{path} answered {answer.status}")
            return body

    def seconds(self, path: str, headers: Mapping[str, str] | None = None) -> float:
        """The time of a page."""
        began = time.perf_counter()
        self.get(path, headers)
        return time.perf_counter() - began

    def await_health(self) -> None:
        """Wait for the first answer; raise an error if there is none."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.get("/healthz")
                return
            time.sleep(0.002)
        self._said.seek(0)
        raise SystemExit(f"{self.process.args!r} did not start: {self._said.read().decode()}")

    def memory_mib(self) -> float:
        """Its memory: the proportional share of its two processes."""
        total = 0
        for process in (self.process.pid, *children(self.process.pid)):
            text = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += int(re.findall(r"^Pss: +([0-9]+) kB", text, re.MULTILINE)[0])
        return total / 1024

    def end(self) -> None:
        """End it and wait for that."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(30)
        self._said.close()


def gunicorn(app: str) -> list[str]:
    """The command that serves a WSGI app with our settings."""
    settings = ("--config", "python:platform_common.web.gunicorn_conf", "--preload")
    return [sys.executable, "-m", "gunicorn", *settings, app]


@contextlib.contextmanager
def serving(command: Sequence[str], **variables: str) -> Iterator[Server]:
    """A server that answers, and is ended after the block."""
    server = Server(command, variables)
    try:
        server.await_health()
        yield server
    finally:
        server.end()


@contextlib.contextmanager
def running(app: str, folder: Path, **variables: str) -> Iterator[Server]:
    """The same for a WSGI app, with the device in `folder`."""
    with serving(gunicorn(app), **{"PLATFORM_ROOT": str(folder)} | variables) as server:
        yield server


def children(process: int) -> list[int]:
    """The living child processes of a process."""
    found = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(number) for number in thread.read_text().split()]
    return found


def rate(server: Server, path: str) -> float:
    """Pages per second that wrk gets in two seconds over eight connections."""
    said = wrk(server, path, "--duration", "2s")
    return float(re.findall(r"Requests/sec: +([0-9.]+)", said)[0])


def ask(server: Server, path: str, count: int, *options: str) -> None:
    """Send at least `count` requests."""
    done = 0
    while done < count:
        said = wrk(server, path, "--duration", "2s", *options)
        done += int(re.findall(r"([0-9]+) requests in", said)[0])


def wrk(server: Server, path: str, *options: str) -> str:
    """The output of one run of wrk; failed requests are an error."""
    url = f"http://127.0.0.1:{server.port}{path}"
    finished = subprocess.run(
        ["wrk", "--threads", "1", "--connections", "8", *options, url],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    if "Non-2xx" in finished.stdout:
        raise SystemExit(f"requests failed: {finished.stdout}")
    return finished.stdout


def p99(taken: Sequence[float]) -> float:
    """The 99th percentile."""
    return _within(taken, 0.99)


def p95(taken: Sequence[float]) -> float:
    """The 95th percentile."""
    return _within(taken, 0.95)


def _within(taken: Sequence[float], share: float) -> float:
    return sorted(taken)[int(len(taken) * share)]


def at_once(count: int, work: Callable[[], float]) -> list[float]:
    """The results of `work` in `count` threads that start together."""
    results: list[float] = []
    ready = threading.Barrier(count)

    def run() -> None:
        ready.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@contextlib.contextmanager
def sampling(look: Callable[[], int]) -> Iterator[list[int]]:
    """The results of `look`, called every few milliseconds until the block ends."""
    found: list[int] = []
    over = threading.Event()

    def run() -> None:
        while not over.wait(0.005):
            found.append(look())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
