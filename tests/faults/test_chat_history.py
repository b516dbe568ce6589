"""The chat's history under kills at every system call, many writers at once, and a full disk."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.at_once import FORK, at_once
from tests.support.faults import FaultServer, Run, small_disk
from wizard_app.chat_history import ChatHistory, turn

_ROOT = Path(__file__).parents[2]
_CALL = re.compile(r"[0-9]+ +([a-z_0-9]+)\(")
_NONE = "kexec_load:error=EIO"
_OLD = b'{"role":"user","content":"old","at":"2026-01-01T00:00:00Z"}\n'
_TORN = b'{"role":"user","cont'


class Case(NamedTuple):
    """What there is, what is done, and what is said afterwards; None is a missing folder."""

    old: bytes | None
    way: str
    said: list[str]


CASES = {
    "the first turn of a device": Case(None, "append", ["new"]),
    "the first turn": Case(b"", "append", ["new"]),
    "the next turn": Case(_OLD, "append", ["old", "new"]),
    "a turn behind a torn one": Case(_OLD + _TORN, "append", ["old", "new"]),
    "cleared": Case(_OLD * 3, "clear", []),
}


class Change:
    """A case on the disk, to be done again and again."""

    def __init__(self, case: Case, server: FaultServer, parent: Path) -> None:
        self.case = case
        self.folder = parent / "device"
        self.path = self.folder / "chat-history.jsonl"
        self._server, self._parent = server, parent

    def reset(self) -> None:
        """Put it all back to how it was."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.case.old is not None:
            self.folder.mkdir()
        if self.case.old:
            self.path.write_bytes(self.case.old)
            self.path.chmod(0o640)

    def run(self, fault: str | None = None) -> Run:
        """Make the change, with a fault."""
        also = "all" if fault == _NONE else ""
        args = (self.case.way, self.path, "new")
        return self._server.run(*args, cwd=self._parent, env={}, fault=fault, also_trace=also)

    def points(self) -> Iterator[str]:
        """Every system call on the folder or in it: `CALL:%s:when=COUNT`."""
        self.reset()
        seen: Counter[str] = Counter()
        for line in self.run(_NONE).calls:
            if match := _CALL.match(line):
                seen[match[1]] += 1
                if f"{self.folder}" in line:
                    yield f"{match[1]}:%s:when={seen[match[1]]}"

    def said(self) -> list[str]:
        """What the history says, whose file must have its mode and end with a whole line."""
        if self.path.exists():
            assert self.path.stat().st_mode & 0o777 == 0o640
        return [one.content for one in ChatHistory(self.path).last()]


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    """What starts them."""
    folder = tmp_path_factory.mktemp("writers")
    with FaultServer(folder, "tests.support.chat_turns", ["ctypes", "grp", "pwd"]) as server:
        yield server


@pytest.mark.parametrize("name", CASES)
def test_chat_06_and_leak_06_killed_at_any_call_the_history_is_whole(
    writers: FaultServer, tmp_path: Path, name: str
) -> None:
    change = Change(CASES[name], writers, tmp_path)
    points = list(change.points())
    assert len(points) > 5
    change.reset()
    old, new = change.said(), CASES[name].said
    outcomes = []
    for point in points:
        change.reset()
        killed = change.run(point % "signal=KILL")
        assert (killed.hit, killed.returncode) == (True, -signal.SIGKILL)
        outcomes.append(change.said())
        assert outcomes[-1] in (old, new), point
        again = change.run()
        assert (again.returncode, again.stderr) == (0, "")
        added = ["new"] if change.case.way == "append" and outcomes[-1] == new else []
        assert change.said() == new + added
        left = {path.name for path in change.folder.iterdir()}
        assert left <= {change.path.name, f".{change.path.name}.lock"}
        # Whoever reads lines finds one torn line at most, and never in the middle of another.
        lines = change.path.read_bytes().split(b"\n") if change.path.exists() else [b""]
        assert lines[-1] == b""
        assert all(line == _TORN or json.loads(line) for line in lines[:-1])
    # First the one, then the other, and never back.
    assert outcomes == sorted(outcomes, key=lambda said: said == new)


@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EROFS", "EACCES"])
@pytest.mark.parametrize("name", ["the next turn", "cleared"])
def test_chat_07_a_call_that_fails_is_told_and_leaves_whole_lines(
    writers: FaultServer, tmp_path: Path, name: str, error: str
) -> None:
    change = Change(CASES[name], writers, tmp_path)
    points = list(change.points())
    change.reset()
    old, new = change.said(), CASES[name].said
    told = 0
    for point in points:
        # strace lets a close that fails not happen at all; a kernel closes all the same.
        if point.startswith("close:"):
            continue
        change.reset()
        failed = change.run(point % f"error={error}")
        assert change.said() in (old, new)
        if failed.returncode:
            told += 1
            assert failed.stderr.startswith(f"error: {change.folder}"), failed.stderr
            unsure = "may or may not outlast a power cut" in failed.stderr
            assert change.said() == (new if unsure else old)
        else:
            assert change.said() == new
    assert told


def _talk(path: Path, process: int) -> None:
    """Thirty-two people at once, each with twenty messages and their answers."""
    failures: list[BaseException] = []

    def one(person: int) -> None:
        history = ChatHistory(path)
        try:
            for number in range(20):
                name = f"{process} {person} {number}"
                history.append(turn("user", f"{name} " + "é" * (person * 100)))
                history.append(turn("assistant", f"{name} " + "x\n" * (number * 50)))
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=one, args=(person,)) for person in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def _turns(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes() if path.exists() else b""
    assert data.endswith(b"\n") or not data
    return [json.loads(line) for line in data.splitlines()]


def test_chat_06_sixty_four_at_once_from_two_processes_keep_their_order(memory: Path) -> None:
    path = memory / "chat-history.jsonl"
    at_once(lambda: _talk(path, 0), lambda: _talk(path, 1))
    turns = _turns(path)
    assert len(turns) == 64 * 20 * 2
    by_person: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for said in turns:
        process, person, number, *_ = said["content"].split(" ")
        by_person[f"{process} {person}"].append((int(number), said["role"]))
    expected = [(number, role) for number in range(20) for role in ("user", "assistant")]
    assert list(by_person.values()) == [expected] * 64


def test_chat_06_cleared_while_many_write_no_line_is_torn(memory: Path) -> None:
    path = memory / "chat-history.jsonl"
    done = FORK.Event()

    def talk() -> None:
        _talk(path, 0)
        done.set()

    def clear() -> None:
        history = ChatHistory(path)
        cleared = 0
        while not done.wait(0.005):
            cleared += history.clear()
        assert cleared > 1

    def read() -> None:
        history = ChatHistory(path)
        while not done.wait(0.001):
            seen = [line for line, _ in history.lines()]
            # The last line may be on its way.
            assert all(b'"role":' in line for line in seen)
            assert len(history.last()) <= 200

    at_once(talk, clear, read)
    _turns(path)
    assert {found.name for found in memory.iterdir()} <= {path.name, f".{path.name}.lock"}


def _program(prefix: list[str], *args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, "-m", "tests.support.chat_turns", *args],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_chat_07_on_a_full_disk_a_turn_is_shown_with_a_notice(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        path = disk.folder / "chat-history.jsonl"
        assert _program([], "append", path, "before").returncode == 0
        before = path.read_bytes()
        text = "too much " * 2000
        for left in (0, 4096):
            sent = _program(disk.fill(left), "send", path, text)
            assert (sent.returncode, sent.stderr) == (0, "")
            assert sent.stdout.startswith("200 ")
            assert "This could not be saved, so it is gone once you leave this page" in sent.stdout
            assert sent.stdout.count("<article") == 3
            assert text.strip() in sent.stdout
            assert path.read_bytes() == before
        (disk.folder / ".filler").unlink(missing_ok=True)
        assert "could not be saved" not in _program([], "send", path, "after").stdout
        assert [said["content"] for said in _turns(path)][:2] == ["before", "after"]
