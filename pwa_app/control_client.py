"""Calls of the control CLI, each of which answers with JSON.

A call that fails, hangs, or prints something else never fails a page: it becomes a slice of
defaults with the reason.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Generic, Protocol, TypeVar, cast

from msgspec import Struct

from platform_common.formats.decode import DecodingError, from_json, shaped
from platform_common.message import Sentence, quoted
from platform_common.plain_text import with_line_feeds, without_controls
from platform_common.process import run as processes
from platform_common.process.run import Finished, ProcessError
from platform_common.redaction import Redactor

V = TypeVar("V")
CALL_LIMIT_S = 10.0
_AT_ONCE = 8
_LONGEST_REASON = 200
_WRONG_USAGE = 64
# The prefixes of error messages by our programs and click; a hint may follow.
_ERROR = re.compile(r"^error: (.*\S)", re.MULTILINE | re.IGNORECASE)


class ControlCli(Protocol):
    """Answers the calls of the control CLI; `sample` says why the answers are samples, if so."""

    @property
    def sample(self) -> Sentence | None:
        """Why all answers are samples; None if they are real."""

    def run(
        self, words: Sequence[str], *, stdin: bytes = b"", limit_s: float | None = None
    ) -> Finished:
        """Make one call, within `limit_s` if given, else the usual limit.

        Raises `ProcessError` if it cannot be made or does not end.
        """


class BusyError(ProcessError):
    """The maximum number of calls is already running."""


class SubprocessCli:
    """Runs `program` with `variables` in its environment, at most eight times at once."""

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
        """Make one call; raises `ProcessError`. The limit includes waiting for a free slot."""
        limit_s = limit_s or self._limit_s
        deadline = time.monotonic() + limit_s
        # A call that would have less than half of its time left is not started.
        if not self._slots.acquire(timeout=limit_s / 2):
            raise BusyError("The control CLI is busy with other calls")
        try:
            return processes.run(
                [self._program, *words],
                timeout_s=max(0.1, round(deadline - time.monotonic(), 1)),
                stdin=stdin,
                variables=self._variables,
            )
        finally:
            self._slots.release()


class Slice(Struct, Generic[V], frozen=True):
    """The result of one call; a `reason` says why its value is only the default.

    `given` are the members present in the answer, with names such as `tunnel.enabled`.
    """

    value: V
    reason: Sentence | None = None
    given: frozenset[str] = frozenset()

    @property
    def stub(self) -> bool:
        """Whether the value is a default instead of an answer."""
        return self.reason is not None


class CliQuery(Struct, Generic[V], frozen=True):
    """One call of the control CLI: its arguments, a reader of its answer, and the default.

    `read` gets the JSON of the answer without null members, and with unprintable characters
    replaced by "·".
    """

    words: tuple[str, ...]
    read: Callable[[Any], V]
    default: V
    limit_s: float | None = None

    def load(self, cli: ControlCli) -> Slice[V]:
        """The answer, whatever the exit status; never raises if the call fails."""
        try:
            finished = cli.run(self.words, limit_s=self.limit_s)
            try:
                value, given = _read(finished.output, self.read)
                return Slice(value, cli.sample, given)
            except DecodingError as error:
                return Slice(self.default, self._why(finished, error))
        except ProcessError as error:
            return Slice(self.default, quoted(plain(error.message)))
        except (MemoryError, OSError, RuntimeError) as error:  # There is no memory, or no thread.
            why = type(error).__name__
            return Slice(
                self.default, Sentence("{call} could not run: {why}", call=self._name, why=why)
            )

    @property
    def _name(self) -> str:
        return " ".join(self.words)

    def _why(self, finished: Finished, error: DecodingError) -> Sentence:
        """Why there is no answer: the program's own message, if it failed."""
        if not finished.status or finished.output.strip():
            return Sentence(
                "{call} did not answer as expected: {why}",
                call=self._name,
                why=plain(error.message),
            )
        said = plain(Redactor().redact(error_message(finished)))
        if finished.status == _WRONG_USAGE and said:
            return Sentence(
                "The control CLI does not support {call}: {why}", call=self._name, why=said
            )
        why = said or (
            f"signal {-finished.status}" if finished.status < 0 else f"exit code {finished.status}"
        )
        return Sentence("{call} failed: {why}", call=self._name, why=why)


def object_view(words: Sequence[str], default: V, *, limit_s: float | None = None) -> CliQuery[V]:
    """A view of a call whose answer is an object with the type of `default`."""
    return CliQuery(tuple(words), partial(shaped, shape=type(default)), default, limit_s)


# Cached, because most answers repeat; without it the bench row "pages a second of a bare app"
# misses.
@lru_cache(8)
def _read(output: bytes, read: Callable[[Any], V]) -> tuple[V, frozenset[str]]:
    tree = read_answer(output)
    return read(tree), frozenset(_members(tree))


def read_answer(output: bytes) -> Any:
    """Parse the JSON of an answer for `CliQuery.read`; raises `DecodingError`."""
    return _showable(from_json(output, cast("type[Any]", Any)))


def error_message(finished: Finished) -> str:
    """The program's error message: its last `error:` line, else its last line."""
    said = (finished.errors.strip() or finished.output.strip()).decode("utf-8", "replace")
    errors = _ERROR.findall(said)
    return errors[-1] if errors else finished.last_line


def plain(text: str) -> str:
    """The text for a page: one short line; unprintable characters become "·"."""
    text = " ".join(_visible(text).split())
    return text if len(text) <= _LONGEST_REASON else text[: _LONGEST_REASON - 1] + "…"


def _members(tree: Any, at: str = "") -> Iterator[str]:
    """The names of the members in `tree` and in the objects inside it."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield at + name
            yield from _members(value, f"{at}{name}.")


def _showable(tree: Any) -> Any:
    match tree:
        case str():
            return _visible(tree)
        case list():
            return [_showable(one) for one in tree]
        case dict():
            return {name: _showable(one) for name, one in tree.items() if one is not None}
    return tree


def _visible(text: str) -> str:
    return without_controls(with_line_feeds(text), "·")
