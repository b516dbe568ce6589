"""Other programs, real ones, and the ways in which they misbehave."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from platform_common.feeding import feeding
from platform_common.processes import Finished, ProcessError, run
from tests.support.threads import no_thread_left

LONG_S = 20.0
SHORT_S = 0.3


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test ends with the threads and descriptors that it began with."""
    before = open_descriptors()
    with no_thread_left():
        yield
    assert open_descriptors() == before


def fed(*argv: str, data: bytes = b"", timeout_s: float = LONG_S) -> Finished:
    with feeding(argv, timeout_s=timeout_s) as feed:
        feed.write(memoryview(data))
        return feed.finish()


def shell(script: str, *, data: bytes = b"", timeout_s: float = LONG_S) -> Finished:
    return fed("/bin/sh", "-c", script, data=data, timeout_s=timeout_s)


def gone(pid: int) -> bool:
    """Whether the process ends within moments."""
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.005)
    return False


def open_descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_program_reads_what_it_is_fed_and_its_output_comes_back() -> None:
    assert fed("wc", "-c", data=b"x" * 5_000_000) == Finished(0, b"5000000\n")


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537])
def test_what_is_fed_arrives_unchanged(size: int) -> None:
    assert fed("cat", data=b"x" * size) == Finished(0, b"x" * size)


def test_both_streams_of_output_are_kept_in_order() -> None:
    assert shell("echo one; echo two >&2; echo three") == Finished(0, b"one\ntwo\nthree\n")


@pytest.mark.parametrize(
    ("script", "status"), [("exit 2", 2), ("kill -KILL $$", -9), ("kill -TERM $$", -15)]
)
def test_rel_22_the_status_tells_how_it_ended(script: str, status: int) -> None:
    assert shell(script).status == status


def test_a_program_that_ends_early_is_fed_no_more() -> None:
    assert fed("true", data=b"x" * 10_000_000) == Finished(0, b"")


def test_a_program_that_ended_may_still_be_fed_without_harm() -> None:
    with feeding(["true"], timeout_s=LONG_S) as feed:
        for _ in range(3):
            feed.write(memoryview(b"x" * 1_000_000))
        assert feed.finish() == Finished(0, b"")


def test_a_program_that_closes_its_input_may_still_answer() -> None:
    done = shell("exec <&-; sleep 0.05; echo still here", data=b"x" * 10_000_000)
    assert done == Finished(0, b"still here\n")


def test_pub_01_a_program_sees_none_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNING_SECRET_KEY", "canary")
    monkeypatch.setenv("LD_PRELOAD_", "canary")
    names = {line.partition("=")[0] for line in fed("env").output.decode().splitlines()}
    assert names <= {"PATH", "HOME", "TMPDIR", "LC_ALL"}
    assert {"PATH", "LC_ALL"} <= names


# Misbehaviour.


UNSTARTABLE = ["missing", "not executable", "a folder", "of no format"]


def unstartable(folder: Path, kind: str) -> Path:
    """A path in `folder` that no program can be started from."""
    path = folder / "program"
    match kind:
        case "not executable":
            path.write_text("#!/bin/sh\n")
        case "a folder":
            path.mkdir()
        case "of no format":
            path.write_bytes(b"\0\1\2")
            path.chmod(0o755)
    return path


@pytest.mark.parametrize("kind", UNSTARTABLE)
def test_rel_22_a_program_that_cannot_start_is_named(tmp_path: Path, kind: str) -> None:
    path = unstartable(tmp_path, kind)
    with pytest.raises(ProcessError, match=r"program could not be started: [A-Z]"):
        fed(str(path))


def test_rel_22_a_program_that_hangs_is_stopped(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(ProcessError, match=r"/bin/sh did not finish in 0.3 s"):
        shell(f"echo $$ > {tmp_path}/pid; exec sleep 60", timeout_s=SHORT_S)
    assert time.monotonic() - begun < LONG_S
    assert gone(int((tmp_path / "pid").read_text()))


def test_rel_22_a_program_that_ignores_signals_is_stopped(tmp_path: Path) -> None:
    script = f"trap '' TERM INT HUP; echo $$ > {tmp_path}/pid; while :; do sleep 1; done"
    with pytest.raises(ProcessError, match="did not finish"):
        shell(script, timeout_s=SHORT_S)
    assert gone(int((tmp_path / "pid").read_text()))


def test_rel_22_a_program_that_takes_no_input_is_stopped() -> None:
    with pytest.raises(ProcessError, match=r"sleep did not finish in 0.3 s"):
        fed("sleep", "60", data=b"x" * 10_000_000, timeout_s=SHORT_S)


def test_rel_22_a_program_that_closes_its_output_and_hangs_is_stopped() -> None:
    with pytest.raises(ProcessError, match="did not finish"):
        shell("exec >&- 2>&-; exec sleep 60", timeout_s=SHORT_S)


def test_rel_22_a_program_that_prints_without_end_is_stopped() -> None:
    done = fed("yes")
    assert done.status == -signal.SIGKILL
    assert len(done.output) == 1 << 20


def test_rel_22_its_children_end_with_it(tmp_path: Path) -> None:
    done = shell("sleep 60 & echo $!", timeout_s=SHORT_S)
    assert done.status == 0
    assert gone(int(done.output))


def test_rel_22_a_child_in_a_session_of_its_own_cannot_hold_us_up() -> None:
    begun = time.monotonic()
    done = shell("setsid sleep 60 & sleep 0.1; echo $!", timeout_s=1.0)
    child = int(done.output)
    try:
        assert done.status == 0
        assert time.monotonic() - begun < LONG_S
    finally:
        os.kill(child, signal.SIGKILL)
    assert gone(child)


def test_the_program_ends_when_the_block_fails(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/ready; exec sleep 60"
    deadline = time.monotonic() + LONG_S
    with (  # noqa: PT012 - the block is what fails
        pytest.raises(KeyboardInterrupt),
        feeding(["/bin/sh", "-c", script], timeout_s=LONG_S),
    ):
        while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        raise KeyboardInterrupt
    assert gone(int((tmp_path / "ready").read_text()))


# Run to the end, its two outputs apart.


def ran(script: str, *, stdin: bytes = b"", timeout_s: float = LONG_S) -> Finished:
    return run(["/bin/sh", "-c", script], stdin=stdin, timeout_s=timeout_s)


def test_the_two_outputs_are_kept_apart() -> None:
    assert ran("echo one; echo two >&2; exit 3") == Finished(3, b"one\n", b"two\n")


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 1 << 20])
def test_what_a_program_reads_it_can_print_unchanged(size: int) -> None:
    assert ran("cat", stdin=b"x" * size) == Finished(0, b"x" * size)


def test_both_outputs_may_be_full_at_once() -> None:
    script = "head -c 1000000 /dev/zero >&2 & head -c 1000000 /dev/zero; wait"
    done = ran(script)
    assert (done.status, len(done.output), len(done.errors)) == (0, 1_000_000, 1_000_000)


@pytest.mark.parametrize(
    ("finished", "line"),
    [
        (Finished(1, b"out\n", b"first\nlast\n\n"), "last"),
        (Finished(1, b"out\n", b" \n"), "out"),
        (Finished(1, b"", b"a\xffb"), "a\ufffdb"),
        (Finished(1, b""), ""),
    ],
    ids=["of-errors", "of-output", "not-utf-8", "nothing"],
)
def test_the_last_line_is_what_it_said_last(finished: Finished, line: str) -> None:
    assert finished.last_line == line


def test_cli_01_a_hanging_program_is_stopped_in_time() -> None:
    begun = time.monotonic()
    with pytest.raises(ProcessError, match=r"^/bin/sh did not finish in 0\.3 s$"):
        ran("echo something; exec sleep 60", timeout_s=SHORT_S)
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    "script",
    ["trap '' TERM INT HUP; sleep 60; sleep 60", "exec >&- 2>&- <&-; exec sleep 60"],
    ids=["ignores-signals", "closes-everything"],
)
def test_cli_01_no_trick_keeps_a_program_alive(script: str, tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="did not finish"):
        ran(f"echo $$ > {tmp_path}/pid; {script}", timeout_s=SHORT_S)
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("ending", ["sleep 60", "exit 0"], ids=["hangs", "ends"])
def test_cli_02_grandchildren_that_hold_the_pipe_end_too(ending: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    script = f"(sleep 60 & echo $! > {tmp_path}/pid; wait) & sleep 0.2; {ending}"
    if ending == "exit 0":
        assert ran(script).status == 0
    else:
        with pytest.raises(ProcessError, match="did not finish"):
            ran(script, timeout_s=0.6)
    assert time.monotonic() - begun < LONG_S
    assert gone(int((tmp_path / "pid").read_text()))


def test_cli_02_a_child_in_a_session_of_its_own_holds_nothing_up() -> None:
    begun = time.monotonic()
    child = int(ran("setsid sleep 60 & sleep 0.1; echo $!").output)
    os.kill(child, signal.SIGKILL)
    assert time.monotonic() - begun < LONG_S / 2
    assert gone(child)


@pytest.mark.parametrize("stream", [1, 2])
def test_cli_03_a_gibibyte_of_output_is_neither_kept_nor_waited_for(stream: int) -> None:
    begun = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(ProcessError, match=r"^/bin/sh printed more than 1,048,576 bytes$"):
            ran(f"head -c 1073741824 /dev/zero >&{stream}")
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.monotonic() - begun < LONG_S
    assert peak_bytes < 8 << 20


def test_cli_03_exactly_the_limit_is_not_too_much() -> None:
    assert len(ran("head -c 1048576 /dev/zero").output) == 1 << 20


def test_cli_01_a_program_that_reads_no_input_may_still_answer() -> None:
    assert ran("sleep 0.05; echo done", stdin=b"x" * 10_000_000) == Finished(0, b"done\n")


def test_cli_01_a_program_that_neither_reads_nor_ends_is_stopped() -> None:
    with pytest.raises(ProcessError, match="did not finish"):
        ran("sleep 60", stdin=b"x" * 10_000_000, timeout_s=SHORT_S)


@pytest.mark.parametrize("kind", UNSTARTABLE)
def test_cli_05_a_program_that_cannot_be_run_is_named(tmp_path: Path, kind: str) -> None:
    path = unstartable(tmp_path, kind)
    with pytest.raises(ProcessError, match=r"program could not be started: [A-Z]"):
        run([str(path)], timeout_s=LONG_S)


@pytest.mark.parametrize("free", range(1, 12))
def test_cli_05_too_few_descriptors_are_an_error_like_any_other(free: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + free, hard))
    try:
        answer = str(run(["/bin/true"], timeout_s=LONG_S).status)
    except ProcessError as error:
        answer = error.message
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert answer in {"0", "/bin/true could not be started: Too many open files"}


def children() -> set[str]:
    """Every child of this process that is not waited for yet, also of tests before."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for task in tasks for child in task.read_text().split()}


def test_cli_06_nothing_is_left_of_many_calls() -> None:
    before = children()
    for _ in range(100):
        run(["/bin/true"], timeout_s=LONG_S)
    assert children() <= before


def test_cli_07_a_program_gets_no_secret_no_descriptor_and_no_folder_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "open").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        done = ran("env; pwd; ls -l /proc/$$/fd")
    assert b"canary" not in done.output
    assert b"\n/\n" in done.output
    assert str(tmp_path).encode() not in done.output


@pytest.mark.parametrize("argument", ["a\0b", "\udc80\ud800"], ids=["nul", "surrogate"])
def test_cli_05_an_argument_that_no_program_can_get_is_an_error_like_any_other(
    argument: str,
) -> None:
    with pytest.raises(ProcessError, match="could not be started"):
        run(["/bin/true", argument], timeout_s=LONG_S)


def test_cli_05_programs_started_at_once_lose_no_descriptor_when_these_run_out() -> None:
    def start(_: int) -> None:
        with contextlib.suppress(ProcessError):
            run(["/bin/true"], timeout_s=LONG_S)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(start, range(8)))
        highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 12, hard))
        try:
            list(pool.map(start, range(200)))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert run(["/bin/true"], timeout_s=LONG_S).status == 0


@pytest.mark.filterwarnings("ignore:subprocess .* is still running")
def test_cli_02_a_program_that_may_not_be_killed_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(group: int, number: int) -> NoReturn:
        raise PermissionError(1, "Operation not permitted")

    begun = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", refuse)
        with pytest.raises(ProcessError, match="did not finish"):
            ran(f"echo $$ > {tmp_path}/pid; exec sleep 60", timeout_s=SHORT_S)
    assert time.monotonic() - begun < LONG_S
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert gone(int((tmp_path / "pid").read_text()))
