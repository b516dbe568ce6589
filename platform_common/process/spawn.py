"""Starts, kills and becomes other programs; no other module does.

Each gets an environment without our secrets and a session of its own; never a shell.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import IO, NoReturn

from platform_common.errors import PlatformError

# The limit of a program's output, and of a single read.
OUTPUT_LIMIT_BYTES = 1 << 20
CHUNK_BYTES = 1 << 16
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
# A killed process is gone by then, unless it cannot be killed.
_UNKILLABLE_S = 2.0
_PASSED_ON = ("PATH", "HOME", "TMPDIR")
# The socket on which a service tells systemd that it is ready.
_NOTIFIED = "NOTIFY_SOCKET"


class ProcessError(PlatformError):
    """A program could not be started, hung, or printed too much."""


def hung(name: str, timeout_s: float) -> ProcessError:
    """The error for a program past its time limit."""
    return ProcessError(f"{name} did not finish in {timeout_s:g} s")


def not_started(name: str, error: Exception) -> ProcessError:
    """The error for a program that the system or Python refuses to start."""
    why = getattr(error, "strerror", None) or error
    return ProcessError(f"{name} could not be started: {why}")


def start_program(
    argv: Sequence[str],
    *,
    stderr: int,
    directory: str | None = None,
    variables: Mapping[str, str] = NO_VARIABLES,
) -> subprocess.Popen[bytes]:
    """Start `argv` in `directory`, with `variables` added to a few of our environment variables.

    Raises `ProcessError` if it cannot be started.
    """
    environment = _environment(_PASSED_ON)
    try:
        # Before 3.11.4, Python leaks the pipes that it creates itself if descriptors run out.
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            their_stdin, our_stdin = _pipe(theirs, ours, "wb")
            their_stdout, our_stdout = _pipe(theirs, ours, "rb")
            their_stderr, our_stderr = stderr, None
            if stderr == subprocess.PIPE:
                their_stderr, our_stderr = _pipe(theirs, ours, "rb")
            process = subprocess.Popen(
                argv,
                stdin=their_stdin,
                stdout=their_stdout,
                stderr=their_stderr,
                cwd=directory,
                env=environment | dict(variables),
                start_new_session=True,
            )
            ours.pop_all()
    except OSError as error:
        raise not_started(argv[0], error) from error
    except (ValueError, RuntimeError, subprocess.SubprocessError) as error:
        # For example, a NUL in an argument, or the interpreter is shutting down.
        raise not_started(argv[0], error) from None
    process.stdin, process.stdout, process.stderr = our_stdin, our_stdout, our_stderr
    return process


def become(argv: list[str]) -> NoReturn:
    """Replace this process by the program `argv`; raises `ProcessError` if that fails."""
    environment = _environment((*_PASSED_ON, _NOTIFIED))
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - without a shell, as it should be
    except (OSError, ValueError) as error:
        raise not_started(argv[0], error) from error


def _environment(passed_on: Sequence[str]) -> dict[str, str]:
    known = {name: os.environ[name] for name in passed_on if name in os.environ}
    return known | {"LC_ALL": "C.UTF-8"}


def _pipe(
    theirs: contextlib.ExitStack, ours: contextlib.ExitStack, mode: str
) -> tuple[int, IO[bytes]]:
    """The program's end of a pipe, and ours; `mode` is that of our end.

    They are closed with their stacks.
    """
    reading, writing = os.pipe()
    end, kept = (reading, writing) if mode == "wb" else (writing, reading)
    theirs.callback(os.close, end)
    return end, ours.enter_context(open(kept, mode, buffering=0))


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and everything that it started, as far as permitted."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and collect its status.

    A process that cannot be killed, because it belongs to another user or waits for a dead disk,
    holds nothing up; `subprocess` collects its status when another program is started.
    """
    kill_group(process)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_UNKILLABLE_S)
