"""Parallel work: order, stopping, and which files may use two threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from release_tools.parallel import SharedProgress, StoppedError, run_parallel
from tests.support.waiting import no_thread_left

TIMEOUT_S = 10


T = TypeVar("T")
R = TypeVar("R")


def run_all(work: Callable[[T, bool], R], items: list[T], jobs: int, **more: Any) -> list[R]:
    """Run `work` on each item and return the results; numbers are their own sizes."""
    options: dict[str, Any] = {
        "progress": SharedProgress(lambda count: None),
        "size_of": lambda item: item,
    } | more
    return run_parallel(work, items, jobs=jobs, **options)


@pytest.fixture(autouse=True)
def all_workers_end() -> Iterator[None]:
    with no_thread_left():
        yield


@pytest.mark.parametrize("jobs", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 50])
def test_the_results_have_the_order_of_the_items(jobs: int, count: int) -> None:
    items = [(index * 37) % 11 for index in range(count)]
    results = run_all(lambda item, paired: item * 2, items, jobs)
    assert results == [item * 2 for item in items]


def test_the_largest_file_is_started_first() -> None:
    begun: list[int] = []
    run_all(lambda item, paired: begun.append(item), [3, 10**30, 0, 7], 1)
    assert begun == [10**30, 7, 3, 0]


@pytest.mark.parametrize(
    ("jobs", "count", "expected"),
    [
        (1, 3, [False, False, False]),
        (2, 1, [True]),
        (2, 2, [False, True]),
        (2, 4, [False, False, False, True]),
        (4, 3, [True, True, True]),
        (4, 5, [False, False, True, True, True]),
    ],
)
def test_a_file_may_use_two_threads_when_few_files_are_left(
    jobs: int, count: int, expected: list[bool]
) -> None:
    assert run_all(lambda item, paired: paired, [*range(count, 0, -1)], jobs) == expected


def test_items_are_processed_in_parallel() -> None:
    meeting = threading.Barrier(3)
    assert run_all(lambda item, paired: meeting.wait(TIMEOUT_S) >= 0, [1, 2, 3], 3) == [True] * 3


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt], ids=["error", "interrupt"])
def test_the_first_error_stops_a_file_that_is_being_read(error: type[BaseException]) -> None:
    progress, reading, stopped = (
        SharedProgress(lambda count: None),
        threading.Event(),
        threading.Event(),
    )

    def work(item: str, paired: bool) -> None:
        if item == "bad":
            assert reading.wait(TIMEOUT_S)
            raise error
        deadline = time.monotonic() + TIMEOUT_S
        try:
            while time.monotonic() < deadline:
                progress(memoryview(b"x"))
                reading.set()
        except StoppedError:
            stopped.set()
            raise

    with pytest.raises(error):
        run_all(work, ["endless", "bad"], 2, progress=progress, size_of=lambda item: 0)
    assert stopped.wait(TIMEOUT_S)


def test_no_file_is_started_after_an_error() -> None:
    begun: list[int] = []
    second_begun, others = threading.Event(), threading.Event()

    def work(item: int, paired: bool) -> None:
        begun.append(item)
        if item == 0:
            assert second_begun.wait(TIMEOUT_S)
            raise ValueError
        second_begun.set()
        assert others.wait(TIMEOUT_S)

    with no_thread_left():
        with pytest.raises(ValueError, match=r"^$"):
            run_all(work, list(range(20)), 2, size_of=lambda item: -item)
        others.set()
    assert begun == [0, 1]


def test_the_progress_counts_bytes_until_it_is_stopped() -> None:
    counted: list[int] = []
    progress = SharedProgress(counted.append)
    progress(memoryview(b"abc"))
    progress(memoryview(b""))
    progress.stop()
    with pytest.raises(StoppedError):
        progress(memoryview(b"d"))
    assert progress.stopped
    assert counted == [3, 0]
