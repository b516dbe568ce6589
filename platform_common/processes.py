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
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import IO, NamedTuple, cast

from platform_common.errors import PlatformError

_OUTPUT_LIMIT_BYTES = 1 << 20
_LOOK_UP_MS = 100
_CHUNK_BYTES = 1 << 16
# By then a process that was killed is gone, unless it cannot be.
_UNKILLABLE_S = 2.0
_PASSED_ON = ("PATH", "HOME", "TMPDIR")
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class ProcessError(PlatformError):
    """A program that could not be started, hung, or printed without end."""


class Finished(NamedTuple):
    """How a program ended: its status (negative for a signal) and what it printed.

    `errors` is its standard error, where that is not a part of `output`.
    """

    status: int
    output: bytes
    errors: bytes = b""

    @property
    def last_line(self) -> str:
        """What it said last, on standard error if anything is there."""
        said = (self.errors.strip() or self.output.strip()).decode("utf-8", "replace")
        return said.rpartition("\n")[2].strip()


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
                raise _hung(self._name, self._timeout_s)
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
            raise _hung(self._name, self._timeout_s) from None
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
            if not (chunk := os.read(stdout.fileno(), _CHUNK_BYTES)):
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
    process = _started(argv, stderr=subprocess.STDOUT)
    stdin, stdout = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    feed = Feed(argv[0], process, stdin, stdout, timeout_s)
    try:
        yield feed
    finally:
        _end(process)
        with contextlib.suppress(OSError):
            stdin.close()
        feed.join()
        stdout.close()


class TooLongError(ProcessError):
    """A program that printed more than it may."""


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    stdin: bytes = b"",
    variables: Mapping[str, str] = _NO_VARIABLES,
    limit_bytes: int = _OUTPUT_LIMIT_BYTES,
) -> Finished:
    """Run `argv` in `/` to its end, with `stdin` for it to read; nothing of it stays behind.

    `variables` are in its environment beside the few that every program gets. Raises
    `ProcessError` when it cannot be started or takes longer than `timeout_s`, and
    `TooLongError` when either of its outputs is over `limit_bytes`.
    """
    process = _started(argv, stderr=subprocess.PIPE, directory="/", variables=variables)
    pipes = [cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr)]
    deadline = time.monotonic() + timeout_s
    try:
        output, errors = _exchange(process, pipes, stdin, deadline, limit_bytes)
    except TimeoutError:
        raise _hung(argv[0], timeout_s) from None
    except OSError as error:
        raise _not_started(argv[0], error) from error
    finally:
        _end(process)
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
    """What the program prints until it ends, or until that is too much.

    Raises `TimeoutError` past the deadline.
    """
    to_it, *from_it = (pipe.fileno() for pipe in pipes)
    printed = {descriptor: bytearray() for descriptor in from_it}
    poll = select.poll()
    for descriptor in (to_it, *from_it):
        os.set_blocking(descriptor, False)
        poll.register(descriptor, select.POLLOUT if descriptor == to_it else select.POLLIN)
    with open(os.pidfd_open(process.pid), "rb") as ended:
        poll.register(ended, select.POLLIN)
        while max(map(len, printed.values())) <= limit_bytes:
            wait_s = deadline - time.monotonic()
            ready = [descriptor for descriptor, _ in poll.poll(max(0.0, wait_s) * 1000)]
            if not ready or wait_s <= 0:
                raise TimeoutError
            if ended.fileno() in ready:
                kill_group(process)
                # What it printed is in the pipes by now: who else holds them does not count.
                if printed.keys().isdisjoint(ready):
                    break
            if to_it in ready and not (stdin := _passed_on(to_it, stdin)):
                poll.unregister(to_it)
                pipes[0].close()
            for descriptor in printed.keys() & ready:
                chunk = os.read(descriptor, _CHUNK_BYTES)
                printed[descriptor] += chunk
                if not chunk:
                    poll.unregister(descriptor)
    output, errors = map(bytes, printed.values())
    return output, errors


def _passed_on(descriptor: int, data: bytes) -> bytes:
    """What of `data` the pipe did not take yet; nothing when nobody reads it any more."""
    try:
        return data[os.write(descriptor, data[:_CHUNK_BYTES]) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return b""


def _hung(name: str, timeout_s: float) -> ProcessError:
    return ProcessError(f"{name} did not finish in {timeout_s:g} s")


def _not_started(name: str, error: OSError) -> ProcessError:
    return ProcessError(f"{name} could not be started: {error.strerror or error}")


def _started(
    argv: Sequence[str],
    *,
    stderr: int,
    directory: str | None = None,
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> subprocess.Popen[bytes]:
    """The program, in a session of its own and with little of our environment."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    try:
        # Python before 3.11.4 loses pipes of its own making when descriptors run out.
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            ends = [_pipe(theirs, ours, "wb"), _pipe(theirs, ours, "rb")]
            if stderr == subprocess.PIPE:
                ends.append(_pipe(theirs, ours, "rb"))
            process = subprocess.Popen(
                argv,
                stdin=ends[0].theirs,
                stdout=ends[1].theirs,
                stderr=ends[2].theirs if stderr == subprocess.PIPE else stderr,
                cwd=directory,
                env=environment | {"LC_ALL": "C.UTF-8"} | dict(variables),
                start_new_session=True,
            )
            ours.pop_all()
    except OSError as error:
        raise _not_started(argv[0], error) from error
    except (ValueError, RuntimeError, subprocess.SubprocessError) as error:
        # Such as a NUL in an argument, or that Python is about to end.
        raise ProcessError(f"{argv[0]} could not be started: {error}") from None
    process.stdin, process.stdout = (end.ours for end in ends[:2])
    process.stderr = ends[2].ours if len(ends) > 2 else None
    return process


class _Ends(NamedTuple):
    """A pipe: the end that a program gets, and ours."""

    theirs: int
    ours: IO[bytes]


def _pipe(theirs: contextlib.ExitStack, ours: contextlib.ExitStack, mode: str) -> _Ends:
    """A pipe whose ends are closed with their stacks; `mode` is what we do with ours."""
    reading, writing = os.pipe()
    end, kept = (reading, writing) if mode == "wb" else (writing, reading)
    theirs.callback(os.close, end)
    return _Ends(end, ours.enter_context(open(kept, mode, buffering=0)))


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the program with everything that it started, as far as we may."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it and take its status.

    One that cannot be killed, as it runs as another user or waits for a dead disk, holds
    nobody up; `subprocess` takes its status when another program is started.
    """
    kill_group(process)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_UNKILLABLE_S)
