"""Files side by side: a worker for each core, and a stop that all of them hear."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

# The longest wait for workers that hang where they hear nothing: on a network, on a disk.
_STOP_S = 1.0

Item = TypeVar("Item")
Result = TypeVar("Result")


class StoppedError(Exception):
    """Another part of the work failed or was interrupted."""


class Pace:
    """Counts the bytes read, shows them, and stops the work when it is to stop."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance
        self._stop = threading.Event()

    def __call__(self, chunk: memoryview) -> None:
        """Count `chunk`; raises `StoppedError` after `stop`."""
        if self._stop.is_set():
            raise StoppedError
        self._advance(len(chunk))

    @property
    def stopped(self) -> bool:
        """Whether nothing more is to be begun."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Let every worker stop at its next chunk."""
        self._stop.set()


def side_by_side(
    work: Callable[[Item, bool], Result],
    items: Sequence[Item],
    *,
    jobs: int,
    pace: Pace,
    size_of: Callable[[Item], int],
) -> list[Result]:
    """`[work(item, paired), …]` in the order of `items`, `jobs` at a time, largest first.

    `paired` is true where too few items are left for every worker, so that a
    file may take two threads. The first error stops the rest and is raised, as
    is an interrupt. The threads end with the process, whatever they wait for.
    """
    order = sorted(range(len(items)), key=lambda index: -size_of(items[index]))
    todo: SimpleQueue[tuple[int, bool]] = SimpleQueue()
    for position, index in enumerate(order):
        todo.put((index, len(order) - position < jobs))
    done: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()

    def worker() -> None:
        while not pace.stopped:
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
        pace.stop()
        # They may be making files, and the caller wants to remove them.
        deadline = time.monotonic() + _STOP_S
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))
        raise
    return [results[index] for index in range(len(items))]
