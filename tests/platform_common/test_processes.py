"""Other programs, real ones, and the ways in which they misbehave."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_common.processes import Finished, ProcessError, feeding
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


def run(*argv: str, data: bytes = b"", timeout_s: float = LONG_S) -> Finished:
    with feeding(argv, timeout_s=timeout_s) as feed:
        feed.write(memoryview(data))
        return feed.finish()


def shell(script: str, *, data: bytes = b"", timeout_s: float = LONG_S) -> Finished:
    return run("/bin/sh", "-c", script, data=data, timeout_s=timeout_s)


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
    assert run("wc", "-c", data=b"x" * 5_000_000) == Finished(0, "5000000\n")


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537])
def test_what_is_fed_arrives_unchanged(size: int) -> None:
    assert run("cat", data=b"x" * size) == Finished(0, "x" * size)


def test_both_streams_of_output_are_kept_in_order() -> None:
    assert shell("echo one; echo two >&2; echo three") == Finished(0, "one\ntwo\nthree\n")


@pytest.mark.parametrize(
    ("script", "status"), [("exit 2", 2), ("kill -KILL $$", -9), ("kill -TERM $$", -15)]
)
def test_rel_22_the_status_tells_how_it_ended(script: str, status: int) -> None:
    assert shell(script).status == status


def test_output_that_is_not_utf_8_is_replaced() -> None:
    assert shell(r"printf 'a\377b'").output == "a\ufffdb"


def test_a_program_that_ends_early_is_fed_no_more() -> None:
    assert run("true", data=b"x" * 10_000_000) == Finished(0, "")


def test_a_program_that_ended_may_still_be_fed_without_harm() -> None:
    with feeding(["true"], timeout_s=LONG_S) as feed:
        for _ in range(3):
            feed.write(memoryview(b"x" * 1_000_000))
        assert feed.finish() == Finished(0, "")


def test_a_program_that_closes_its_input_may_still_answer() -> None:
    done = shell("exec <&-; sleep 0.05; echo still here", data=b"x" * 10_000_000)
    assert done == Finished(0, "still here\n")


def test_pub_01_a_program_sees_none_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNING_SECRET_KEY", "canary")
    monkeypatch.setenv("LD_PRELOAD_", "canary")
    names = {line.partition("=")[0] for line in run("env").output.splitlines()}
    assert names <= {"PATH", "HOME", "TMPDIR", "LC_ALL"}
    assert {"PATH", "LC_ALL"} <= names


# Misbehaviour.


@pytest.mark.parametrize("kind", ["missing", "not executable", "a folder", "of no format"])
def test_rel_22_a_program_that_cannot_start_is_named(tmp_path: Path, kind: str) -> None:
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
        run(str(path))


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
        run("sleep", "60", data=b"x" * 10_000_000, timeout_s=SHORT_S)


def test_rel_22_a_program_that_closes_its_output_and_hangs_is_stopped() -> None:
    with pytest.raises(ProcessError, match="did not finish"):
        shell("exec >&- 2>&-; exec sleep 60", timeout_s=SHORT_S)


def test_rel_22_a_program_that_prints_without_end_is_stopped() -> None:
    done = run("yes")
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
