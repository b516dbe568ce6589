"""The control CLI as the apps see it: calls that answer with JSON, each on its own.

A call that fails, hangs, or prints something else never fails a page: it is a
slice of defaults, with the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from platform_common import processes
from platform_common.decoding import DecodingError
from platform_common.processes import Finished, ProcessError
from platform_common.sentence import Sentence

V = TypeVar("V")
CALL_LIMIT_S = 10.0
_AT_ONCE = 8
_LONGEST_REASON = 200


class ControlCli(Protocol):
    """Whatever answers the calls of the control CLI; `sample` says why its answers are made up."""

    @property
    def sample(self) -> Sentence | None:
        """Why no answer is real; None when they are."""

    def run(
        self, words: Sequence[str], *, stdin: bytes = b"", limit_s: float | None = None
    ) -> Finished:
        """Make one call, in `limit_s` instead of the usual limit where that is given.

        Raises `ProcessError` when it cannot be made or does not end.
        """


class BusyError(ProcessError):
    """As many calls as may be are under way already."""


class SubprocessCli:
    """The program at `program`, with `variables` in its environment; eight at once at most."""

    sample = None

    def __init__(
        self, program: str, variables: Mapping[str, str], *, limit_s: float = CALL_LIMIT_S
    ) -> None:
        self._program = program
        self._variables = variables
        self._limit_s = limit_s
        self._slots = threading.BoundedSemaphore(_AT_ONCE)

    def run(
        self, words: Sequence[str], *, stdin: bytes = b"", limit_s: float | None = None
    ) -> Finished:
        """Make one call; raises `ProcessError`."""
        if not self._slots.acquire(timeout=self._limit_s):
            raise BusyError("The control CLI is busy")
        try:
            return processes.run(
                [self._program, *words],
                timeout_s=limit_s or self._limit_s,
                stdin=stdin,
                variables=self._variables,
            )
        finally:
            self._slots.release()


class Slice(Struct, Generic[V], frozen=True):
    """What one call answered; a `reason` says why its value is but the default."""

    value: V
    reason: Sentence | None = None

    @property
    def stub(self) -> bool:
        """Whether the value stands in for an answer."""
        return self.reason is not None


class View(Struct, Generic[V], frozen=True):
    """One call of the control CLI: its words, how to read its answer, what stands in for it."""

    words: tuple[str, ...]
    read: Callable[[bytes], V]
    default: V

    def load(self, cli: ControlCli) -> Slice[V]:
        """The answer, whatever the exit status; never raises for a call that went wrong."""
        name = " ".join(self.words)
        try:
            finished = cli.run(self.words)
        except ProcessError as error:
            return Slice(self.default, Sentence(error.message))
        try:
            return Slice(self.read(finished.output), cli.sample)
        except DecodingError as error:
            if finished.status and not finished.output.strip():
                why = finished.last_line[:_LONGEST_REASON] or f"exit code {finished.status}"
                return Slice(self.default, Sentence("{call} failed: {why}", call=name, why=why))
            return Slice(
                self.default,
                Sentence("{call} did not answer as expected: {why}", call=name, why=error.message),
            )


class Flights:
    """Work under way, which all who want the same at the same time share.

    Nothing is kept: who asks when it has ended begins anew.
    """

    def __init__(self, at_once: int) -> None:
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="flight")
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[object]] = {}

    def join(self, key: Hashable, work: Callable[[], V]) -> Future[V]:
        """The run of `work` that is under way for `key`, or a new one."""
        with self._lock:
            found = self._under_way.get(key)
            if found is None:
                found = self._under_way[key] = self._pool.submit(work)
                fresh = found
            else:
                fresh = None
        if fresh is not None:
            fresh.add_done_callback(lambda ended: self._leave(key, ended))
        return found  # type: ignore[return-value]  # one key always means the same work

    def forget(self, key: Hashable) -> None:
        """Who asks from now on gets a run that begins now: what it reads has changed."""
        with self._lock:
            self._under_way.pop(key, None)

    def _leave(self, key: Hashable, ended: Future[object]) -> None:
        with self._lock:
            if self._under_way.get(key) is ended:
                del self._under_way[key]
