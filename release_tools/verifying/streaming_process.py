"""A running program that we stream data to, such as a verifier of large files."""

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

_POLL_MS = 100


class StreamingProcess:
    """A running program whose standard input we write; at most 1 MiB of its output is kept."""

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
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read_output, args=(stdout,), daemon=True)
        self._reader.start()
        os.set_blocking(stdin.fileno(), False)

    def write(self, chunk: memoryview) -> None:
        """Write `chunk`, or drop it if the program has closed its input.

        Raises `ProcessError` if the program reads nothing for the time limit.
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
        """Close its input and wait for it to exit; raises `ProcessError` after the time limit."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        deadline = time.monotonic() + self._timeout_s
        self._reader.join(self._timeout_s)
        try:
            status = self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise hung(self._name, self._timeout_s) from None
        return Finished(status, bytes(self._output))

    def stop_reading(self) -> None:
        """Stop the thread that reads the output, and wait for it."""
        self._closing.set()
        self._reader.join()

    def _read_output(self, stdout: IO[bytes]) -> None:
        # A child that left the process group can hold the pipe open forever, so do not block.
        poll = select.poll()
        poll.register(stdout.fileno(), select.POLLIN)
        while not self._closing.is_set():
            if not poll.poll(_POLL_MS):
                continue
            if not (chunk := os.read(stdout.fileno(), CHUNK_BYTES)):
                return
            self._output += chunk
            if len(self._output) > OUTPUT_LIMIT_BYTES:
                del self._output[OUTPUT_LIMIT_BYTES:]
                kill_group(self._process)
                return


@contextlib.contextmanager
def streaming_process(argv: Sequence[str], *, timeout_s: float) -> Iterator[StreamingProcess]:
    """Start `argv` with its standard input open, and kill it when the block ends.

    Raises `ProcessError` if it cannot be started.
    """
    process = started(argv, stderr=subprocess.STDOUT)
    stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    streaming = StreamingProcess(argv[0], process, stdin, stdout, timeout_s)
    try:
        yield streaming
    finally:
        end(process)
        with contextlib.suppress(OSError):
            stdin.close()
        streaming.stop_reading()
        stdout.close()
