"""Running other programs, real ones, and how they misbehave."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from platform_common.process.run import Finished, ProcessError, run
from release_tools.verifying.streaming_process import StreamingProcess
from tests.support.own_process import limited
from tests.support.waiting import no_thread_left, wait_until

LONG_S = 20.0
SHORT_S = 0.5


@pytest.fixture(autouse=True)
def nothing_remains() -> Iterator[None]:
    """Check that every test leaves the threads and descriptors as they were."""
    before = open_descriptors()
    with no_thread_left():
        yield
    assert open_descriptors() == before


Start = Callable[..., Finished]


def run_streaming(*argv: str, stdin: bytes = b"", timeout_s: float = LONG_S) -> Finished:
    """Run the program with stdin written in pieces and both outputs merged."""
    with StreamingProcess(argv, timeout_s=timeout_s) as feed:
        for at in range(0, len(stdin), 1 << 22):
            feed.write(memoryview(stdin)[at : at + (1 << 22)])
        return feed.finish()


def run_whole(*argv: str, stdin: bytes = b"", timeout_s: float = LONG_S) -> Finished:
    """Run the program to its end, with both outputs separate."""
    return run(argv, stdin=stdin, timeout_s=timeout_s)


def shell(script: str) -> tuple[str, ...]:
    """The command line that runs `script`."""
    return ("/bin/sh", "-c", script)


both = pytest.mark.parametrize("start", [run_streaming, run_whole])


def gone(pid: int) -> bool:
    """Whether the process has ended, or ends soon, as a zombie or completely."""

    def ended() -> bool:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return True

    wait_until(ended)
    return True


def open_descriptors() -> int:
    """The number of open descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def highest_descriptor() -> int:
    """The highest number of an open descriptor."""
    return max(int(path.name) for path in Path("/proc/self/fd").iterdir())


@both
@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 1 << 20])
def test_input_and_output_pass_unchanged(start: Start, size: int) -> None:
    assert start("cat", stdin=b"x" * size) == Finished(0, b"x" * size)


def test_both_outputs_are_merged_in_order_or_kept_apart() -> None:
    script = shell("echo one; echo two >&2; echo three; exit 3")
    assert run_streaming(*script) == Finished(3, b"one\ntwo\nthree\n")
    assert run_whole(*script) == Finished(3, b"one\nthree\n", b"two\n")


@both
@pytest.mark.parametrize(
    ("script", "status"), [("exit 2", 2), ("kill -KILL $$", -9), ("kill -TERM $$", -15)]
)
def test_rel_22_the_status_says_how_the_program_ended(
    start: Start, script: str, status: int
) -> None:
    assert start(*shell(script)).status == status


@both
def test_cli_01_a_program_that_does_not_read_its_input_can_still_answer(start: Start) -> None:
    much = b"x" * 10_000_000
    assert start("true", stdin=much) == Finished(0, b"")
    for script in ("exec <&-; sleep 0.05; echo done", "sleep 0.05; echo done"):
        assert start(*shell(script), stdin=much) == Finished(0, b"done\n")


@both
def test_pub_01_leak_04_cli_07_a_program_inherits_no_secret_and_no_descriptor(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SIGNING_SECRET_KEY", "LD_PRELOAD_", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "canary")
    names = {line.partition("=")[0] for line in start("env").output.decode().splitlines()}
    assert {"PATH", "LC_ALL"} <= names <= {"PATH", "HOME", "TMPDIR", "LC_ALL"}
    monkeypatch.chdir(tmp_path)
    # A program that is run to its end gets no folder of ours as its working directory.
    assert start is run_streaming or start("pwd").output == b"/\n"
    with (tmp_path / "open").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        output = start(*shell("ls -l /proc/$$/fd")).output
    assert str(tmp_path).encode() not in output


def test_both_outputs_can_fill_up_at_once() -> None:
    done = run_whole(*shell("head -c 1000000 /dev/zero >&2 & head -c 1000000 /dev/zero; wait"))
    assert (done.status, len(done.output), len(done.errors)) == (0, 1_000_000, 1_000_000)


@pytest.mark.parametrize(
    ("finished", "line"),
    [
        (Finished(1, b"out\n", b"first\nlast\n\n"), "last"),
        (Finished(1, b"out\n", b" \n"), "out"),
        (Finished(1, b"", b"a\xffb"), "a\ufffdb"),
        (Finished(1, b""), ""),
    ],
    ids=["from-stderr", "from-stdout", "not-utf-8", "nothing"],
)
def test_the_last_line_is_that_of_stderr_or_else_of_stdout(finished: Finished, line: str) -> None:
    assert finished.last_line == line


# Misbehaviour.


@both
@pytest.mark.parametrize("kind", ["missing", "not executable", "a folder", "of no format"])
def test_rel_22_cli_05_a_program_that_cannot_start_is_named(
    start: Start, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "program"
    match kind:
        case "not executable":
            path.write_text("#!/bin/sh\n")
        case "a folder":
            path.mkdir()
        case "of no format":
            path.write_bytes(b"\0\1\2")
            path.chmod(0o755)
    with pytest.raises(ProcessError, match=r"program could not be started: [A-Z]"):
        start(str(path))


@both
@pytest.mark.parametrize(
    "script",
    [
        "exec sleep 60",
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        "exec >&- 2>&-; exec sleep 60",
        "exec >&- 2>&- <&-; exec sleep 60",
    ],
    ids=["hangs", "ignores-signals", "closes-its-output", "closes-everything"],
)
def test_rel_22_cli_01_a_hanging_program_is_killed_whatever_it_does(
    start: Start, script: str, tmp_path: Path
) -> None:
    begun = time.monotonic()
    with pytest.raises(ProcessError, match=r"^/bin/sh did not finish in 0\.5 s$"):
        start(*shell(f"echo $$ > {tmp_path}/pid; {script}"), timeout_s=SHORT_S)
    assert time.monotonic() - begun < LONG_S
    assert gone(int((tmp_path / "pid").read_text()))


@both
def test_rel_22_cli_01_a_program_that_neither_reads_nor_ends_is_killed(start: Start) -> None:
    with pytest.raises(ProcessError, match=r"sleep did not finish in 0\.5 s"):
        start("sleep", "60", stdin=b"x" * 10_000_000, timeout_s=SHORT_S)


def test_rel_22_a_program_with_endless_output_is_killed() -> None:
    done = run_streaming("yes")
    assert (done.status, len(done.output)) == (-signal.SIGKILL, 1 << 20)


@both
def test_rel_22_cli_02_the_children_of_a_program_end_with_it(start: Start, tmp_path: Path) -> None:
    begun = time.monotonic()
    pid = tmp_path / "pid"
    child = f"(sleep 60 & echo $! > {pid}; wait) & while [ ! -s {pid} ]; do sleep 0.01; done"
    assert start(*shell(f"{child}; exit 0"), timeout_s=2.0).status == 0
    assert gone(int(pid.read_text()))
    with pytest.raises(ProcessError, match="did not finish"):
        start(*shell(f"{child}; sleep 60"), timeout_s=0.6)
    assert gone(int(pid.read_text()))
    assert time.monotonic() - begun < LONG_S


@both
def test_rel_22_cli_02_a_child_in_another_session_does_not_delay_the_caller(
    start: Start, tmp_path: Path
) -> None:
    begun = time.monotonic()
    pid = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ > {pid}; exec sleep 60' & while [ ! -s {pid} ]; do :; done"
    done = start(*shell(script), timeout_s=2.0)
    child = int(pid.read_text())
    os.kill(child, signal.SIGKILL)
    assert done.status == 0
    assert time.monotonic() - begun < LONG_S
    assert gone(child)


def test_the_program_ends_if_the_block_raises(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/ready; exec sleep 60"
    with (  # noqa: PT012 - the block is what fails
        pytest.raises(KeyboardInterrupt),
        StreamingProcess(shell(script), timeout_s=LONG_S),
    ):
        wait_until((tmp_path / "ready").exists)
        raise KeyboardInterrupt
    assert gone(int((tmp_path / "ready").read_text()))


@pytest.mark.parametrize("stream", [1, 2])
def test_cli_03_a_gibibyte_of_output_is_refused_and_uses_little_memory(stream: int) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ProcessError, match=r"^/bin/sh printed more than 1,048,576 bytes$"):
            run_whole(*shell(f"head -c 1073741824 /dev/zero >&{stream}"))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 << 20


def test_cli_03_output_of_exactly_the_limit_is_accepted() -> None:
    assert len(run_whole("head", "-c", "1048576", "/dev/zero").output) == 1 << 20


@pytest.mark.parametrize("free", range(1, 12))
def test_cli_05_running_out_of_descriptors_is_a_process_error(free: int) -> None:
    with limited(resource.RLIMIT_NOFILE, highest_descriptor() + free):
        try:
            answer = str(run(["/bin/true"], timeout_s=LONG_S).status)
        except ProcessError as error:
            answer = error.message
    assert answer in {"0", "/bin/true could not be started: Too many open files"}


def children() -> set[str]:
    """The children of this process that were not waited for, including those of earlier tests."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for task in tasks for child in task.read_text().split()}


def test_cli_06_many_calls_leave_no_children() -> None:
    before = children()
    for _ in range(100):
        run(["/bin/true"], timeout_s=LONG_S)
    assert children() <= before


@pytest.mark.parametrize("argument", ["a\0b", "\udc80\ud800"], ids=["nul", "surrogate"])
def test_cli_05_an_argument_that_cannot_be_passed_is_a_process_error(
    argument: str,
) -> None:
    with pytest.raises(ProcessError, match="could not be started"):
        run(["/bin/true", argument], timeout_s=LONG_S)


def test_cli_05_parallel_starts_leak_no_descriptor_when_descriptors_run_out() -> None:
    def start(_: int) -> None:
        with contextlib.suppress(ProcessError):
            run(["/bin/true"], timeout_s=LONG_S)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(start, range(8)))
        with limited(resource.RLIMIT_NOFILE, highest_descriptor() + 12):
            list(pool.map(start, range(200)))
    assert run(["/bin/true"], timeout_s=LONG_S).status == 0


@pytest.mark.filterwarnings("ignore:subprocess .* is still running")
def test_cli_02_a_program_that_cannot_be_killed_does_not_delay_the_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(group: int, number: int) -> NoReturn:
        raise PermissionError(1, "Operation not permitted")

    begun = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", refuse)
        with pytest.raises(ProcessError, match="did not finish"):
            run_whole(*shell(f"echo $$ > {tmp_path}/pid; exec sleep 60"), timeout_s=SHORT_S)
    assert time.monotonic() - begun < LONG_S
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert gone(int((tmp_path / "pid").read_text()))
