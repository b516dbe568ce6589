"""Work that is shared by concurrent callers."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NoReturn

import pytest

from pwa_app.single_flight import SingleFlight

LONG_S = 20.0


class Gate:
    """Work that ends when the gate is open, and counts its runs."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.begun = threading.Semaphore(0)
        self.runs = 0

    def __call__(self) -> int:
        self.runs += 1
        run = self.runs
        self.begun.release()
        assert self.open.wait(LONG_S)
        return run

    def await_run(self) -> None:
        assert self.begun.acquire(timeout=LONG_S)


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_cli_08_concurrent_callers_share_one_run(gate: Gate) -> None:
    flight = SingleFlight(4)
    asked = [flight.join("status", gate) for _ in range(32)]
    assert flight.join("cost", lambda: "cost").result(LONG_S) == "cost"
    gate.open.set()
    assert [flight.result(LONG_S) for flight in asked] == [1] * 32
    # After the pool has shut down, the app still answers.
    flight._pool.shutdown()
    assert flight.join("status", lambda: "fine").result(LONG_S) == "fine"


def test_a_caller_after_the_end_gets_a_new_run(gate: Gate) -> None:
    flight = SingleFlight(4)
    gate.open.set()
    # Immediately after the result: no caller may join the run that has just ended.
    assert [flight.join("status", gate).result(LONG_S) for _ in range(500)] == [*range(1, 501)]


def test_after_forget_a_new_run_sees_the_change(gate: Gate) -> None:
    flight = SingleFlight(4)
    before = flight.join("models", gate)
    gate.await_run()
    flight.forget("models")
    after = flight.join("models", gate)
    gate.await_run()
    assert flight.join("models", gate) is after
    gate.open.set()
    assert (before.result(LONG_S), after.result(LONG_S)) == (1, 2)
    assert flight.join("models", gate).result(LONG_S) == 3


def test_an_exception_reaches_all_callers_and_is_not_kept() -> None:
    def fail() -> NoReturn:
        raise MemoryError

    flight = SingleFlight(4)
    with pytest.raises(MemoryError):
        flight.join("status", fail).result(LONG_S)
    assert flight.join("status", lambda: "fine").result(LONG_S) == "fine"


def test_cli_05_without_a_thread_the_caller_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(thread: threading.Thread) -> NoReturn:
        raise RuntimeError("can't start new thread")

    flight = SingleFlight(4)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        assert flight.join("status", lambda: "fine").done()
    # The pool still holds the work whose thread could not start: it is not run twice.
    runs: list[Future[str]] = [flight.join("status", lambda: "again") for _ in range(3)]
    assert {run.result(LONG_S) for run in runs} == {"again"}


def test_many_threads_with_the_same_key_never_run_the_work_concurrently() -> None:
    flight = SingleFlight(4)
    runs: list[int] = []
    alive = threading.BoundedSemaphore(1)

    def work() -> int:
        with alive:  # Two runs at once would wait here for each other, and be counted twice.
            runs.append(1)
            return sum(runs)

    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(lambda _: flight.join("x", work).result(LONG_S), range(2000)))
    assert max(seen) == len(runs) <= 2000
