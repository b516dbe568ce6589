"""Many writers of one file at once: no change is lost."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from platform_common.appending import append_line, put_aside
from platform_common.files import Owner
from platform_common.records import record_file
from tests.support.writers import state

_FORK = multiprocessing.get_context("fork")
_TIMEOUT_S = 120
_OWNER = Owner("root", "daemon")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory: a slow disk would say nothing more, and take its time."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def _at_once(*works: Callable[[], None]) -> None:
    """Do each in a process of its own, all beginning together; fail if one fails."""
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


def _work(start: Barrier, work: Callable[[], None]) -> None:
    start.wait(_TIMEOUT_S)
    work()


def test_key_14_twenty_programs_that_edit_one_record_lose_no_edit(folder: Path) -> None:
    path = folder / "record"

    def one_more(data: bytes | None, key: str) -> bytes:
        counts = Counter({k: int(v) for k, v in (line.split("=") for line in _lines(data))})
        counts.update([key, "ALL"])
        return "".join(f"{key}={count}\n" for key, count in counts.items()).encode()

    def editor(key: str) -> Callable[[], None]:
        def work() -> None:
            for _ in range(50):
                record_file.edit(path, lambda data: one_more(data, key), mode=0o640, owner=_OWNER)

        return work

    _at_once(*(editor(f"KEY_{number}") for number in range(20)))
    found = state(folder)
    assert set(found) == {"record"}
    each = {f"KEY_{number}=50" for number in range(20)}
    assert set(_lines(found["record"])) == each | {"ALL=1000"}


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode().splitlines()


def _line(writer: int, number: int) -> bytes:
    """Lines of all lengths, some longer than a page or what a pipe takes at once."""
    chance = random.Random(writer * 1000 + number)
    filler = chance.choice((b"", b"x" * chance.randrange(300), b"y" * 9000))
    return b"%d %d %s" % (writer, number, filler)


def test_eight_programs_that_append_lose_no_line_though_the_file_is_put_aside(
    folder: Path,
) -> None:
    path = folder / "lines"
    count = 500
    done = _FORK.Semaphore(0)

    def appender(writer: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(count):
                append_line(path, _line(writer, number), mode=0o640, owner=_OWNER)
            done.release()

        return work

    def put_aside_often() -> None:
        moved = ended = 0
        while ended < 8:
            moved += put_aside(path, folder / f"lines.{moved:04}")
            ended += done.acquire(timeout=0.01)

    _at_once(put_aside_often, *(appender(writer) for writer in range(8)))
    found = state(folder)
    assert [name for name in found if name.startswith(".")] == []
    assert len(found) > 2
    lines = list(itertools.chain(*(data.split(b"\n")[:-1] for data in found.values())))
    assert all(data.endswith(b"\n") or not data for data in found.values())
    assert Counter(lines) == Counter(
        _line(writer, number) for writer in range(8) for number in range(count)
    )
