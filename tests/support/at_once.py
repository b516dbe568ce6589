"""Works that are done side by side, each in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.synchronize import Barrier

FORK = multiprocessing.get_context("fork")
_TIMEOUT_S = 120


def at_once(*works: Callable[[], object]) -> None:
    """Do each in a process of its own, all beginning together; fail if one fails."""
    start = FORK.Barrier(len(works))
    processes = [FORK.Process(target=_work, args=(start, work)) for work in works]
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
