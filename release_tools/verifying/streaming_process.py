"""A running program that we stream data to, such as a verifier of large files."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO, Self, cast

from platform_common.process.run import Finished
from platform_common.process.spawn import (
    CHUNK_BYTES,
    OUTPUT_LIMIT_BYTES,
    end,
    hung,
    kill_group,
    start_program,
)

_POLL_MS = 100


class StreamingProcess:
    """A running program whose standard input we write; it is killed when the `with` block ends.

    Raises `ProcessError` if it cannot be started. At most 1 MiB of its output is kept.
    """

    def __init__(self, argv: Sequence[str], *, timeout_s: float) -> None:
        self._name, self._timeout_s = argv[0], timeout_s
        self._process = start_program(argv, stderr=subprocess.STDOUT)
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        self._output = bytearray()
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        # A blocking write would hang for as long as the program does not read.
        os.set_blocking(self._stdin.fileno(), False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._closing.set()
        self._reader.join()
        self._stdout.close()

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

    def _read_output(self) -> None:
        # A child that left the process group can hold the pipe open forever, so do not block.
        poll = select.poll()
        poll.register(self._stdout.fileno(), select.POLLIN)
        while not self._closing.is_set():
            if not poll.poll(_POLL_MS):
                continue
            if not (chunk := os.read(self._stdout.fileno(), CHUNK_BYTES)):
                return
            self._output += chunk
            if len(self._output) > OUTPUT_LIMIT_BYTES:
                del self._output[OUTPUT_LIMIT_BYTES:]
                kill_group(self._process)
                return
