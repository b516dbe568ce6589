"""Working on several files in parallel, and stopping all of the work at once."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

# The longest wait for workers that cannot notice a stop because the network or a disk hangs.
_STOP_S = 1.0

Item = TypeVar("Item")
Result = TypeVar("Result")


class StoppedError(Exception):
    """Another part of the work failed or was interrupted."""


class SharedProgress:
    """Reports the bytes that all workers read, and stops the workers."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._stop = threading.Event()

    def __call__(self, chunk: memoryview) -> None:
        """Report `chunk`; raises `StoppedError` after `stop`."""
        if self._stop.is_set():
            raise StoppedError
        self._advance(len(chunk))

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Make every worker stop at its next chunk."""
        self._stop.set()


def run_parallel(
    work: Callable[[Item, bool], Result],
    items: Sequence[Item],
    size_of: Callable[[Item], int],
    progress: SharedProgress,
    jobs: int | None = None,
) -> list[Result]:
    """Return `[work(item, paired), …]` in the order of `items`.

    `jobs` threads, by default one per core, start with the largest item. `paired` is true if
    fewer items are left than threads, so that a file may use two. The first error, or an
    interrupt, stops the rest and is raised. The daemon threads never keep the process alive.
    """
    jobs = jobs or len(os.sched_getaffinity(0))
    order = sorted(range(len(items)), key=lambda index: -size_of(items[index]))
    todo: SimpleQueue[tuple[int, bool]] = SimpleQueue()
    for position, index in enumerate(order):
        todo.put((index, len(order) - position < jobs))
    done: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()

    def worker() -> None:
        while not progress.stopped:
            try:
                index, paired = todo.get_nowait()
            except Empty:
                return
            try:
                done.put((index, work(items[index], paired), None))
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
                done.put((index, None, error))
                return

    threads = [threading.Thread(target=worker, daemon=True) for _ in range(min(jobs, len(items)))]
    for thread in threads:
        thread.start()
    results: dict[int, Result] = {}
    try:
        while len(results) < len(items):
            index, result, error = done.get()
            if error is not None:
                raise error
            results[index] = result  # type: ignore[assignment]
    except BaseException:
        progress.stop()
        # They may be creating files that the caller is about to remove.
        deadline = time.monotonic() + _STOP_S
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))
        raise
    return [results[index] for index in range(len(items))]
