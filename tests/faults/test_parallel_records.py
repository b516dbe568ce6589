"""Many writers of one file at once: no change is lost."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from platform_common.appending import append_line, put_aside
from platform_common.files import Owner
from platform_common.records import record_file
from tests.support.at_once import FORK, at_once
from tests.support.writers import state

_OWNER = Owner("root", "daemon")


def test_key_14_twenty_programs_that_edit_one_record_lose_no_edit(memory: Path) -> None:
    path = memory / "record"

    def one_more(data: bytes | None, key: str) -> bytes:
        counts = Counter({k: int(v) for k, v in (line.split("=") for line in _lines(data))})
        counts.update([key, "ALL"])
        return "".join(f"{key}={count}\n" for key, count in counts.items()).encode()

    def editor(key: str) -> Callable[[], None]:
        def work() -> None:
            for _ in range(50):
                record_file.edit(path, lambda data: one_more(data, key), mode=0o640, owner=_OWNER)

        return work

    at_once(*(editor(f"KEY_{number}") for number in range(20)))
    found = state(memory)
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
    memory: Path,
) -> None:
    path = memory / "lines"
    count = 500
    done = FORK.Semaphore(0)

    def appender(writer: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(count):
                append_line(path, _line(writer, number), mode=0o640, owner=_OWNER)
            done.release()

        return work

    def put_aside_often() -> None:
        moved = ended = 0
        while ended < 8:
            moved += put_aside(path, memory / f"lines.{moved:04}")
            ended += done.acquire(timeout=0.01)

    at_once(put_aside_often, *(appender(writer) for writer in range(8)))
    found = state(memory)
    assert [name for name in found if name.startswith(".")] == []
    assert len(found) > 2
    lines = list(itertools.chain(*(data.split(b"\n")[:-1] for data in found.values())))
    assert all(data.endswith(b"\n") or not data for data in found.values())
    assert Counter(lines) == Counter(
        _line(writer, number) for writer in range(8) for number in range(count)
    )
