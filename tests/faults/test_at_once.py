"""Many simultaneous writers of one file: no change is lost, and no line is torn."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from platform_common.records import record_file
from platform_common.storage.append_log import append_line, put_aside
from tests.support.writers import MODE, OWNER, state
from wizard_app.chat.history import ChatHistory, turn

_FORK = multiprocessing.get_context("fork")
_TIMEOUT_S = 240


def _at_once(*works: Callable[[], object]) -> None:
    """Run each function in its own process, all starting together; fail if one fails."""
    start = _FORK.Barrier(len(works))
    processes = [_FORK.Process(target=_work, args=(start, work)) for work in works]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(_TIMEOUT_S)
        assert [process.exitcode for process in processes] == [0] * len(works)
    finally:
        for process in processes:
            process.kill()
            process.join(_TIMEOUT_S)


def _work(start: Barrier, work: Callable[[], object]) -> None:
    start.wait(_TIMEOUT_S)
    work()


def test_key_14_twenty_programs_that_edit_one_record_lose_no_edit(memory: Path) -> None:
    path = memory / "record"

    def one_more(data: bytes | None, key: str) -> bytes:
        counts = Counter({k: int(v) for k, v in (line.split("=") for line in _lines(data))})
        counts.update([key, "ALL"])
        return "".join(f"{key}={count}\n" for key, count in counts.items()).encode()

    def editor(key: str) -> Callable[[], None]:
        def work() -> None:
            for _ in range(50):
                record_file.edit(path, lambda data: one_more(data, key), mode=MODE, owner=OWNER)

        return work

    _at_once(*(editor(f"KEY_{number}") for number in range(20)))
    found = state(memory)
    assert set(found) == {"record"}
    each = {f"KEY_{number}=50" for number in range(20)}
    assert set(_lines(found["record"])) == each | {"ALL=1000"}


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode().splitlines()


def _line(writer: int, number: int) -> bytes:
    """A line; their lengths vary, up to more than a page and more than a pipe takes at once."""
    chance = random.Random(writer * 1000 + number)
    filler = chance.choice((b"", b"x" * chance.randrange(300), b"y" * 9000))
    return b"%d %d %s" % (writer, number, filler)


@pytest.mark.parametrize("count", [50, pytest.param(500, marks=pytest.mark.long)])
def test_eight_appending_programs_lose_no_line_while_the_file_is_renamed(
    memory: Path, count: int
) -> None:
    path = memory / "lines"
    moved_once, done = _FORK.Event(), _FORK.Semaphore(0)

    def appender(writer: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(count):
                append_line(path, _line(writer, number), mode=MODE, owner=OWNER)
                # Lines are written before and after the first rename, however slow the renaming
                # process is.
                if number == count // 2:
                    assert moved_once.wait(_TIMEOUT_S)
            done.release()

        return work

    def put_aside_often() -> None:
        moved = ended = 0
        while ended < 8:
            if put_aside(path, memory / f"lines.{moved:04}"):
                moved += 1
                moved_once.set()
            ended += done.acquire(timeout=0.01)

    _at_once(put_aside_often, *(appender(writer) for writer in range(8)))
    found = state(memory)
    assert [name for name in found if name.startswith(".")] == []
    assert len(found) > 1
    lines = list(itertools.chain(*(data.split(b"\n")[:-1] for data in found.values())))
    assert all(data.endswith(b"\n") or not data for data in found.values())
    assert Counter(lines) == Counter(
        _line(writer, number) for writer in range(8) for number in range(count)
    )


def _talk(path: Path, process: int, people: int, messages: int) -> None:
    """Let many people write at once, each with messages and their answers."""
    failures: list[BaseException] = []

    def one(person: int) -> None:
        history = ChatHistory(path)
        try:
            for number in range(messages):
                name = f"{process} {person} {number}"
                history.append(turn("user", f"{name} " + "é" * (person * 100)))
                history.append(turn("assistant", f"{name} " + "x\n" * (number * 50)))
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=one, args=(person,)) for person in range(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def _turns(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes() if path.exists() else b""
    assert data.endswith(b"\n") or not data
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize(
    ("people", "messages"), [(8, 5), pytest.param(32, 20, marks=pytest.mark.long)]
)
def test_chat_06_simultaneous_turns_from_two_processes_keep_their_order(
    memory: Path, people: int, messages: int
) -> None:
    path = memory / "chat-history.jsonl"
    _at_once(*(lambda one=one: _talk(path, one, people, messages) for one in range(2)))
    by_person: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for said in _turns(path):
        process, person, number, *_ = said["content"].split(" ")
        by_person[f"{process} {person}"].append((int(number), said["role"]))
    expected = [(number, role) for number in range(messages) for role in ("user", "assistant")]
    assert list(by_person.values()) == [expected] * people * 2


@pytest.mark.long
def test_chat_06_clearing_while_many_write_tears_no_line(memory: Path) -> None:
    path = memory / "chat-history.jsonl"
    done = _FORK.Event()

    def talk() -> None:
        _talk(path, 0, 32, 20)
        done.set()

    def clear() -> None:
        history = ChatHistory(path)
        while not history.clear():
            done.wait(0.001)
        while not done.wait(0.005):
            history.clear()

    def read() -> None:
        history = ChatHistory(path)
        while not done.wait(0.001):
            seen = [line for line, _ in history.lines()]
            # The last line may still be incomplete.
            assert all(b'"role":' in line for line in seen)
            assert len(history.last()) <= 200

    _at_once(talk, clear, read)
    _turns(path)
    assert {found.name for found in memory.iterdir()} <= {path.name, f".{path.name}.lock"}
