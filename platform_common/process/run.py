"""Runs other programs to their end.

Each gets a list of arguments, an environment without our secrets, a process group of its own,
a time limit and an output limit; never a shell.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple, cast

from platform_common.process.spawn import (
    CHUNK_BYTES,
    NO_VARIABLES,
    OUTPUT_LIMIT_BYTES,
    ProcessError,
    end,
    hung,
    kill_group,
    not_started,
    start_program,
)

__all__ = ["Finished", "ProcessError", "TooLongError", "run"]


class Finished(NamedTuple):
    """The result of a program: its status (negative for a signal) and its output.

    `errors` is its standard error, unless that is a part of `output`.
    """

    status: int
    output: bytes
    errors: bytes = b""

    @property
    def last_line(self) -> str:
        """The last line of standard error, or of the output if that is empty."""
        said = (self.errors.strip() or self.output.strip()).decode("utf-8", "replace")
        return said.rpartition("\n")[2].strip()


class TooLongError(ProcessError):
    """A program printed more than its limit."""


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    stdin: bytes = b"",
    variables: Mapping[str, str] = NO_VARIABLES,
    limit_bytes: int = OUTPUT_LIMIT_BYTES,
) -> Finished:
    """Run `argv` in `/` to its end, with `stdin` as its input; kill what it leaves running.

    `variables` are added to the few environment variables that every program gets. Raises
    `ProcessError` if it cannot be started or takes longer than `timeout_s`, and `TooLongError` if
    one of its outputs exceeds `limit_bytes`.
    """
    process = start_program(argv, stderr=subprocess.PIPE, directory="/", variables=variables)
    pipes = [cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr)]
    deadline = time.monotonic() + timeout_s
    try:
        output, errors = _exchange(process, pipes, stdin, deadline, limit_bytes)
    except TimeoutError:
        raise hung(argv[0], timeout_s) from None
    except OSError as error:
        raise not_started(argv[0], error) from error
    finally:
        end(process)
        for pipe in pipes:
            pipe.close()
    for printed in (output, errors):
        if len(printed) > limit_bytes:
            raise TooLongError(f"{argv[0]} printed more than {limit_bytes:,} bytes")
    return Finished(process.returncode, output, errors)


def _exchange(
    process: subprocess.Popen[bytes],
    pipes: Sequence[IO[bytes]],
    stdin: bytes,
    deadline: float,
    limit_bytes: int,
) -> tuple[bytes, bytes]:
    """Collect the program's output until it ends or exceeds its limit.

    Raises `TimeoutError` after the deadline.
    """
    to_it, *from_it = (pipe.fileno() for pipe in pipes)
    printed = {descriptor: bytearray() for descriptor in from_it}
    poll = select.poll()
    for descriptor in (to_it, *from_it):
        os.set_blocking(descriptor, False)
        poll.register(descriptor, select.POLLOUT if descriptor == to_it else select.POLLIN)
    # A descriptor that becomes readable when the program ends: its pipes may stay open in its
    # children for hours.
    with open(os.pidfd_open(process.pid), "rb") as ended:
        poll.register(ended, select.POLLIN)
        while max(map(len, printed.values())) <= limit_bytes:
            wait_s = deadline - time.monotonic()
            ready = [descriptor for descriptor, _ in poll.poll(max(0.0, wait_s) * 1000)]
            if not ready or wait_s <= 0:
                raise TimeoutError
            if ended.fileno() in ready:
                kill_group(process)
                # Its output is in the pipes by now; do not wait for others that hold them open.
                if printed.keys().isdisjoint(ready):
                    break
            if to_it in ready and not (stdin := _passed_on(to_it, stdin)):
                poll.unregister(to_it)
                pipes[0].close()
            for descriptor in printed.keys() & ready:
                chunk = os.read(descriptor, CHUNK_BYTES)
                printed[descriptor] += chunk
                if not chunk:
                    poll.unregister(descriptor)
    output, errors = map(bytes, printed.values())
    return output, errors


def _passed_on(descriptor: int, data: bytes) -> bytes:
    """Write to the pipe and return the rest of `data`; empty if the reader is gone."""
    try:
        return data[os.write(descriptor, data[:CHUNK_BYTES]) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return b""
