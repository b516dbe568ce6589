"""Work that several want at the same time, done once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Flights:
    """Work under way, which all who want the same at the same time share.

    Nothing is kept: who asks when it has ended begins anew.
    """

    def __init__(self, at_once: int) -> None:
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="flight")
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[Any]] = {}

    def join(self, key: Hashable, work: Callable[[], T]) -> Future[T]:
        """The run of `work` that is under way for `key`, or a new one."""
        with self._lock:
            found = self._under_way.get(key)
            if found is not None:
                return found
            flight: Future[T] = Future()
            self._under_way[key] = flight
        try:
            self._pool.submit(self._fly, key, flight, work)
        except RuntimeError:
            # No thread is to be had, or the app is ending: then who asks does it.
            self._fly(key, flight, work)
        return flight

    def forget(self, key: Hashable) -> None:
        """Who asks from now on gets a run that begins now: what it reads has changed."""
        with self._lock:
            self._under_way.pop(key, None)

    def _fly(self, key: Hashable, flight: Future[T], work: Callable[[], T]) -> None:
        with self._lock:
            # A pool that could not start a thread has kept the work all the same.
            if flight.running() or flight.done():
                return
            flight.set_running_or_notify_cancel()
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            self._leave(key, flight)
            flight.set_exception(error)
        else:
            # First of all nobody may join any more: who has the answer may ask again at once.
            self._leave(key, flight)
            flight.set_result(result)

    def _leave(self, key: Hashable, ended: Future[T]) -> None:
        with self._lock:
            if self._under_way.get(key) is ended:
                del self._under_way[key]
