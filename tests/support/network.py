"""Loopback: free ports, and waiting for servers."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.waiting import wait_until


def free_port() -> int:
    """A TCP port on loopback that nothing listens on."""
    while True:
        # Not from the range that Linux uses for connections, one of which could take it meanwhile.
        port = random.SystemRandom().randrange(20_000, 32_000)
        if is_free(port):
            return port


def is_free(port: int) -> bool:
    """Whether nothing listens on that port of loopback."""
    with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def wait_for_port(port: int, process: subprocess.Popen[bytes], timeout_s: float = 90) -> None:
    """Wait until `port` accepts connections; raises if `process` ends or the time is over."""

    def listens() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with status {process.returncode}")
        with contextlib.suppress(ConnectionError, TimeoutError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        return False

    wait_until(listens, timeout_s, pause_s=0.02)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program that a test started, and wait for it."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


@contextlib.contextmanager
def listening(
    port: int,
    log: Path,
    *argv: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Run a server on `port` until the block ends; `log` receives its output."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        wait_for_port(port, process)
        yield
    finally:
        end(process)
