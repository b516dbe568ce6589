"""Work that several callers want at the same time, done once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class SingleFlight:
    """Work under way, shared by all who want the same at the same time.

    No result is kept: whoever asks after the work has ended starts it anew.
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
            future: Future[T] = Future()
            self._under_way[key] = future
        try:
            self._pool.submit(self._run, key, future, work)
        except RuntimeError:
            # No thread is available, or the app is ending: the caller does the work.
            self._run(key, future, work)
        return future

    def forget(self, key: Hashable) -> None:
        """Start a new run for whoever asks from now on: what it reads has changed."""
        with self._lock:
            self._under_way.pop(key, None)

    def _run(self, key: Hashable, future: Future[T], work: Callable[[], T]) -> None:
        with self._lock:
            # A pool that could not start a thread has kept the work all the same.
            if future.running() or future.done():
                return
            future.set_running_or_notify_cancel()
        # Nobody may join once there is a result: who has the answer may ask again at once.
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            self._leave(key, future)
            future.set_exception(error)
        else:
            self._leave(key, future)
            future.set_result(result)

    def _leave(self, key: Hashable, ended: Future[T]) -> None:
        with self._lock:
            if self._under_way.get(key) is ended:
                del self._under_way[key]
