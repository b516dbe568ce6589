"""Other programs: the only module that starts one.

Each gets a list of arguments, an environment without our secrets, a process
group of its own, a time limit and an output limit; never a shell.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, cast

from platform_common.errors import PlatformError

_OUTPUT_LIMIT_BYTES = 1 << 20
_LOOK_UP_MS = 100
_PASSED_ON = ("PATH", "HOME", "TMPDIR")


class ProcessError(PlatformError):
    """A program that could not be started, hung, or printed without end."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended: its status (negative for a signal) and what it printed."""

    status: int
    output: str


class Feed:
    """A running program that reads its standard input from us."""

    def __init__(
        self,
        name: str,
        process: subprocess.Popen[bytes],
        stdin: IO[bytes],
        stdout: IO[bytes],
        timeout_s: float,
    ) -> None:
        self._name = name
        self._process = process
        self._stdin = stdin
        self._timeout_s = timeout_s
        self._output = bytearray()
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read_output, args=(stdout,), daemon=True)
        self._reader.start()
        os.set_blocking(stdin.fileno(), False)

    def write(self, chunk: memoryview) -> None:
        """Pass `chunk` on; a program that has stopped reading gets no more of it.

        Raises `ProcessError` when it takes nothing for the time limit.
        """
        if self._stdin.closed:
            return
        descriptor = self._stdin.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        while chunk:
            if not poll.poll(self._timeout_s * 1000):
                raise self._hung()
            try:
                chunk = chunk[os.write(descriptor, chunk) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                self._stdin.close()
                return

    def finish(self) -> Finished:
        """End its input and wait for it; raises `ProcessError` past the time limit."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        deadline = time.monotonic() + self._timeout_s
        self._reader.join(self._timeout_s)
        try:
            status = self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._hung() from None
        return Finished(status, self._output.decode("utf-8", "replace"))

    def join(self) -> None:
        """Wait until nothing reads its output any more."""
        self._over.set()
        self._reader.join()

    def _hung(self) -> ProcessError:
        return ProcessError(f"{self._name} did not finish in {self._timeout_s:g} s")

    def _read_output(self, stdout: IO[bytes]) -> None:
        # A process that left the group may hold the pipe open for ever, so we look up.
        poll = select.poll()
        poll.register(stdout.fileno(), select.POLLIN)
        while not self._over.is_set():
            if not poll.poll(_LOOK_UP_MS):
                continue
            if not (chunk := os.read(stdout.fileno(), 1 << 16)):
                return
            self._output += chunk
            if len(self._output) > _OUTPUT_LIMIT_BYTES:
                del self._output[_OUTPUT_LIMIT_BYTES:]
                kill_group(self._process)
                return


@contextlib.contextmanager
def feeding(argv: Sequence[str], *, timeout_s: float) -> Iterator[Feed]:
    """Start `argv` with its standard input open; it is gone when the block ends.

    Raises `ProcessError` when it cannot be started.
    """
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment | {"LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
    except OSError as error:
        raise ProcessError(f"{argv[0]} could not be started: {error.strerror}") from error
    stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    feed = Feed(argv[0], process, stdin, stdout, timeout_s)
    try:
        yield feed
    finally:
        kill_group(process)
        process.wait()
        with contextlib.suppress(OSError):
            stdin.close()
        feed.join()
        stdout.close()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the program with everything that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
