"""Runs work once for all callers that want it at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class SingleFlight:
    """Running work, shared by all callers that want the same at the same time.

    Results are not kept: a caller that comes after the end starts a new run.
    """

    def __init__(self, at_once: int) -> None:
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="flight")
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[Any]] = {}

    def join(self, key: Hashable, work: Callable[[], T]) -> Future[T]:
        """Return the running `work` for `key`, or start it."""
        with self._lock:
            found = self._under_way.get(key)
            if found is not None:
                return found
            future: Future[T] = Future()
            self._under_way[key] = future
        try:
            self._pool.submit(self._run, key, future, work)
        except RuntimeError:
            # No thread is available, or the app is ending: run it in the caller's thread.
            self._run(key, future, work)
        return future

    def forget(self, key: Hashable) -> None:
        """Make later callers start a new run, because what it reads has changed."""
        with self._lock:
            self._under_way.pop(key, None)

    def _run(self, key: Hashable, future: Future[T], work: Callable[[], T]) -> None:
        with self._lock:
            # A pool that could not start a thread has still queued the work.
            if future.running() or future.done():
                return
            future.set_running_or_notify_cancel()
        # Removed before the result is set: a caller that has it may ask again at once.
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
