"""Reads parts of the device's journal with `journalctl`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as NotYetError
from functools import partial
from pathlib import Path

from msgspec import Struct

from platform_common.control_answers import Status
from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.process import run as processes
from platform_common.process.run import Finished, ProcessError, TooLongError
from platform_common.validation import check_unit, passes
from pwa_app.control_client import BusyError, Slice
from pwa_app.keys.known_secrets import KnownSecrets
from pwa_app.logs.journal_entries import Entry, read_entries, shown
from pwa_app.single_flight import SingleFlight

FALLBACK_UNIT = "openclaw.service"
# The voice relay is installed separately; the voice page names its unit.
_OWN_UNITS = tuple(
    f"platform-{name}.service" for name in ("pwa", "wizard", "tunnel", "voice-relay")
)
FEWEST_LINES, USUAL_LINES, MOST_LINES = 10, 100, 1000
_AT_ONCE = 4
_OUTPUT_LIMIT_BYTES = 4 << 20
# Without --all, a field has at most 4 KiB, so this many lines always fit.
_LINES_WITHOUT_LONG_ONES = 100
_LONGEST_REASON = 200
_INTEGER = re.compile("(-?)([0-9]++)")
_CURSOR = re.compile(
    r"s=[0-9a-f]{32};i=[0-9a-f]{1,16};b=([0-9a-f]{32});m=[0-9a-f]{1,16};"
    r"t=([0-9a-f]{1,16});x=[0-9a-f]{1,16}"
)


def number_of_lines(text: str) -> int:
    """Parse a number of lines; anything but an integer means the default."""
    found = _INTEGER.fullmatch(text)
    if not found:
        return USUAL_LINES
    digits = found[2].lstrip("0") or "0"
    if found[1]:
        return FEWEST_LINES
    # Python refuses to parse integers with thousands of digits.
    if len(digits) > len(str(MOST_LINES)):
        return MOST_LINES
    return min(max(int(digits), FEWEST_LINES), MOST_LINES)


class Units(Struct, frozen=True):
    """The units whose journals can be shown; if `active` is not `known`, it is a fallback."""

    active: str = FALLBACK_UNIT
    known: bool = False
    others: tuple[str, ...] = _OWN_UNITS

    @property
    def choices(self) -> tuple[str, ...]:
        """All units, the active gateway first."""
        return tuple(dict.fromkeys((self.active, *self.others)))

    def choose(self, wanted: str) -> str:
        """Return `wanted` if it is one of these units, else the active one."""
        return wanted if wanted in self.choices else self.active


def units_of(status: Slice[Status]) -> Units:
    """The units that the control CLI names; an invalid name counts as no answer."""
    agent, tunnel = status.value.agent, status.value.tunnel.unit
    active = agent.journal_unit or agent.unit or status.value.unit
    others = (tunnel, *_OWN_UNITS) if passes(check_unit, tunnel) else _OWN_UNITS
    if status.stub or not passes(check_unit, active):
        return Units(others=others)
    return Units(active, known=True, others=others)


class Place(Struct, frozen=True):
    """A journal position, from a cursor."""

    boot: str
    stamp_us: int


def place_of(cursor: str) -> Place | None:
    """Parse a cursor; None if it is invalid."""
    found = _CURSOR.fullmatch(cursor)
    return Place(found[1], int(found[2], 16)) if found else None


class Extract(Struct, frozen=True):
    """A part of the journal: the last `lines` of a unit, or those `after` a cursor.

    With `boot`, only those since the device was started.
    """

    unit: str
    lines: int
    boot: bool = False
    after: str = ""


class Reading(Struct, frozen=True):
    """Entries, oldest first, and how many this read could have returned."""

    entries: tuple[Entry, ...]
    lines: int


class JournalError(PlatformError):
    """The journal could not be read."""


class Journal:
    """Reads the machine's journal, or that in `folder`; equal concurrent requests share a read."""

    def __init__(self, secrets: KnownSecrets, folder: Path | None, *, limit_s: float) -> None:
        self._secrets = secrets
        self._folder = folder
        self._limit_s = limit_s
        # Separate from the control CLI's threads, so a hanging journal holds up no other page.
        self._single_flight = SingleFlight(_AT_ONCE)
        self._units: Units | None = None

    def remember_units(self, status: Slice[Status]) -> Units:
        """Store the units that `status` names for `last_units`, and return them."""
        self._units = units_of(status)
        return self._units

    def last_units(self, load_status: Callable[[], Slice[Status]]) -> Units:
        """The units from the last `status`, which is only called if there was none yet."""
        return self._units or self.remember_units(load_status())

    def read(self, extract: Extract) -> Reading:
        """Read a part of the journal, or less if it is too large; raises `JournalError`."""
        run = self._single_flight.join(extract, partial(self._read, extract))
        try:
            return run.result(2 * self._limit_s)
        except NotYetError:
            raise _not_read(BusyError("too many others are reading it")) from None

    def _read(self, extract: Extract) -> Reading:
        deadline = time.monotonic() + self._limit_s
        for lines, long_ones in _attempts(extract.lines):
            argv = self._argv(extract, lines, long_ones=long_ones)
            try:
                finished = processes.run(
                    argv,
                    timeout_s=max(0.1, round(deadline - time.monotonic(), 1)),
                    limit_bytes=_OUTPUT_LIMIT_BYTES,
                )
            except TooLongError:
                continue
            except ProcessError as error:
                raise _not_read(error) from error
            if finished.status:
                raise self._refused(finished)
            redact = self._secrets.redactor().redact
            return Reading(tuple(read_entries(finished.output, redact)), lines)
        raise _not_read(TooLongError("journalctl printed more than was requested"))

    def _argv(self, extract: Extract, lines: int, *, long_ones: bool) -> list[str]:
        return [
            "journalctl",
            f"--unit={extract.unit}",
            f"--lines={lines}",
            *("--output=json", "--no-pager", "--quiet", "--utc"),
            *(["--all"] if long_ones else []),
            "--output-fields=MESSAGE,PRIORITY",
            *([f"--directory={self._folder}"] if self._folder else []),
            *(["--boot"] if extract.boot else []),
            *([f"--after-cursor={extract.after}"] if extract.after else []),
        ]

    def _refused(self, finished: Finished) -> JournalError:
        if b"permission" in finished.errors.lower():
            return JournalError(
                Sentence(
                    "This service is not allowed to read the journal. Add its user to the "
                    "group systemd-journal, then restart the service."
                )
            )
        said = shown(finished.last_line, self._secrets.redactor().redact)[:_LONGEST_REASON]
        return _not_read(ProcessError(said or f"exit code {finished.status}"))


def _attempts(lines: int) -> Iterator[tuple[int, bool]]:
    """Yield ever smaller requests, the last one without very long lines."""
    yield lines, True
    yield max(1, lines // 8), True
    yield max(1, lines // 64), True
    yield min(lines, _LINES_WITHOUT_LONG_ONES), False


def _not_read(error: ProcessError) -> JournalError:
    return JournalError(Sentence("The journal could not be read: {why}.", why=error.message))
