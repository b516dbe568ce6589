"""The apps as installed programs, serving on a port of loopback."""

from __future__ import annotations

import contextlib
import os
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.support.network import free_port, is_free
from tests.support.releases import clean_environment, program
from tests.support.waiting import wait_until


@dataclass(frozen=True)
class Served:
    """A running app."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self.url.rpartition(":")[2])


@contextlib.contextmanager
def served(
    name: str,
    environment: Mapping[str, str],
    log: Path,
    *options: str,
    host: str = "127.0.0.1",
    scheme: str = "http",
    port: int | None = None,
    before: Sequence[str] = (),
) -> Iterator[Served]:
    """Run `<name> serve` with `environment` and `options` until the block ends.

    It listens on `port`, by default on a free one. The words in `before` are put before the
    command, and must execute it in the same process.
    """
    if port is None:
        port = free_port()
    else:
        # A worker that was killed with its server may take a moment to end, on a busy machine.
        wait_until(partial(is_free, port))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*before, program(name), "serve", "--bind", f"{host}:{port}", *options],
            env=clean_environment() | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"{scheme}://127.0.0.1:{port}"
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


def unverified() -> ssl.SSLContext:
    """A TLS context that accepts any certificate."""
    # Without the usual trusted authorities, which take a while to load.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    # The certificate is tested elsewhere.
    tls = urllib.request.HTTPSHandler(context=unverified())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), tls)

    def answers() -> bool:
        assert process.poll() is None, log.read_text("utf-8", "replace")
        with contextlib.suppress(OSError), opener.open(f"{url}/healthz", timeout=5) as answer:
            return bool(answer.read() == b"ok")
        return False

    wait_until(answers, pause_s=0.05)
