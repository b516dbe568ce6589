"""Programs that read what we write, such as a verifier of large files."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, cast

from platform_common.process.run import Finished
from platform_common.process.spawn import (
    CHUNK_BYTES,
    OUTPUT_LIMIT_BYTES,
    end,
    hung,
    kill_group,
    started,
)

_LOOK_UP_MS = 100


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
                raise hung(self._name, self._timeout_s)
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
            raise hung(self._name, self._timeout_s) from None
        return Finished(status, bytes(self._output))

    def join(self) -> None:
        """Wait until nothing reads its output any more."""
        self._over.set()
        self._reader.join()

    def _read_output(self, stdout: IO[bytes]) -> None:
        # A process that left the group may hold the pipe open for ever, so we look up.
        poll = select.poll()
        poll.register(stdout.fileno(), select.POLLIN)
        while not self._over.is_set():
            if not poll.poll(_LOOK_UP_MS):
                continue
            if not (chunk := os.read(stdout.fileno(), CHUNK_BYTES)):
                return
            self._output += chunk
            if len(self._output) > OUTPUT_LIMIT_BYTES:
                del self._output[OUTPUT_LIMIT_BYTES:]
                kill_group(self._process)
                return


@contextlib.contextmanager
def feeding(argv: Sequence[str], *, timeout_s: float) -> Iterator[Feed]:
    """Start `argv` with its standard input open; it is gone when the block ends.

    Raises `ProcessError` when it cannot be started.
    """
    process = started(argv, stderr=subprocess.STDOUT)
    stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    feed = Feed(argv[0], process, stdin, stdout, timeout_s)
    try:
        yield feed
    finally:
        end(process)
        with contextlib.suppress(OSError):
            stdin.close()
        feed.join()
        stdout.close()
