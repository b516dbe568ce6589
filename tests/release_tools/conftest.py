"""Fast runs of `release-tools`: forks of a process that has already imported everything."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.faults import FaultServer
from tests.support.releases import Tools, clean_environment


def run(
    *words: str | Path, folder: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run any command in `folder`, such as strace with the program."""
    return subprocess.run(
        [*map(str, words)],
        cwd=folder,
        env=clean_environment() | dict(env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@dataclass
class ForkedTools(Tools):
    """`Tools` whose runs are forks, which start faster than Python."""

    server: FaultServer | None = None

    def __call__(
        self, *args: str | Path, env: Mapping[str, str] | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        assert self.server is not None
        words = [str(arg) for arg in args]
        started = self.server.start(*words, cwd=self.folder, env=dict(env or {}))
        limit = threading.Timer(timeout, started.kill, [signal.SIGKILL])
        limit.start()
        try:
            run = started.wait()
        finally:
            limit.cancel()
        if run.returncode == -signal.SIGKILL:
            raise subprocess.TimeoutExpired(words, timeout)
        return subprocess.CompletedProcess(words, run.returncode, run.stdout, run.stderr)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    """The process that forks the runs, also with failing system calls."""
    with FaultServer(tmp_path_factory.mktemp("runs")) as server:
        yield server


@pytest.fixture
def tools(tmp_path: Path, server: FaultServer) -> Tools:
    """The program `release-tools`, which runs in the folder of this test."""
    return ForkedTools(tmp_path, server=server)
