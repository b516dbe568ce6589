"""The apps as their users meet them: the installed program, serving on a port of loopback."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.releases import clean_environment, program

_START_S = 20


@dataclass(frozen=True)
class Served:
    """A running app."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def served(
    name: str,
    environment: Mapping[str, str],
    log: Path,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
) -> Iterator[Served]:
    """Run `<name> serve` with `environment`; it has ended when the block has.

    `port` is one that is known already, else a free one is taken.
    """
    port = port or free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program(name), "serve", "--bind", f"{host}:{port}"],
            env=clean_environment() | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _await(url, process, log)
        yield Served(url, process, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), opener.open(f"{url}/healthz", timeout=5) as answer:
            if answer.read() == b"ok":
                return
        time.sleep(0.05)
    raise AssertionError(f"the app did not start: {log.read_text('utf-8', 'replace')}")
