"""Repeats an operation, each time with a fault at another system call.

A subject says what runs, what exists before, and what must hold afterwards; a walk goes through its
system calls one by one. The same must hold for all subjects:

- after a kill: everything is as before or as afterwards, and a new run succeeds;
- after an interrupt: the same, and nothing is left over;
- after a failed call: the same, and it was reported in one sentence, or did not matter.
"""

from __future__ import annotations

import errno
import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.faults.programs import BEGIN, END
from tests.support.faults import FaultServer, Run

OLD, TORN, NEW = "old", "torn", "new"
_ORDER = (OLD, TORN, NEW)
_CALL = re.compile(r"([0-9]+) +([a-z_0-9]+)\(")
UNSURE = "may not survive a power cut"
# The change is made, but may not survive a power cut, or could not be reported.
DONE = re.compile(f"{UNSURE}|^error: reading or writing: ")


class Point(NamedTuple):
    """A system call: its name, its number among such calls of its thread, and strace's line."""

    call: str
    number: int
    line: str

    def fault(self, what: str) -> str:
        """The fault `what` at this call, in strace's format."""
        return f"{self.call}:{what}:when={self.number}"


class Subject(Protocol):
    """The operation of a walk: the command line of its program, and the state of the disk."""

    server: FaultServer
    folder: Path
    args: Sequence[str | Path]
    env: dict[str, str]
    # The exit status of a failed run, and the output of an interrupted one.
    failure_status: int = 1
    interrupt_message: str = ""
    user: int | None = None

    def __init__(self, server: FaultServer, folder: Path, args: Sequence[str | Path]) -> None:
        self.server, self.folder, self.args = server, folder, args
        self.env = {}

    def reset(self) -> None:
        """Put everything back to how it was."""

    def concerns(self, call: str, line: str) -> bool:
        """Whether a call may do harm if it fails."""

    def found(self) -> str:
        """Whether everything is `OLD`, `NEW` or `TORN`; fails for any other state."""

    def left_overs(self) -> list[str]:
        """The unfinished files of a writer."""

    def again(self, found: str) -> None:
        """Check that a new run succeeds after a kill that left the state `found`."""

    def sentence(self, run: Run) -> str:
        """The error message of a failed run; "" if it did not fail."""
        if run.returncode == 0:
            return ""
        assert run.returncode == self.failure_status, run.stderr
        first, *others = run.stderr.splitlines()
        assert re.fullmatch(r"error: .*[^.]", first), first
        assert "[Errno" not in first
        assert [line[:6] for line in others] in ([], ["hint: "]), run.stderr
        return first

    def after_failure(self, run: Run, reason: str) -> bool:
        """Check the state after a call failed for `reason`; return whether that was reported."""
        why = self.sentence(run)
        # A failure that was not reported must not matter.
        assert self.found() == (NEW if not why or DONE.search(why) else OLD), why
        return bool(why)

    def run(self, fault: str | None = None, also_trace: str = "") -> Run:
        """Run it, with a fault if one is given."""
        how = {"cwd": self.folder, "env": self.env, "user": self.user, "fault": fault}
        return self.server.run(*self.args, **how, also_trace=also_trace)

    @cached_property
    def calls(self) -> list[Point]:
        """Every system call of the tested part, in order."""
        # The first run is ignored, because Python compiles what it imports for the first time.
        for fault in (None, ""):
            self.reset()
            ran = self.run(fault, "all")
        assert ran.returncode == 0, ran.stderr
        found: list[Point] = []
        seen: Counter[tuple[str, str]] = Counter()
        for line in ran.calls:
            if END in line:
                break
            if BEGIN in line:
                found.clear()
            elif match := _CALL.match(line):
                # As strace counts: the calls of each thread separately.
                seen[match[1], match[2]] += 1
                found.append(Point(match[2], seen[match[1], match[2]], line))
        return found

    @cached_property
    def points(self) -> list[Point]:
        """The relevant calls, each once."""
        found: dict[tuple[str, int], Point] = {}
        for point in self.calls:
            if self.concerns(point.call, point.line):
                found.setdefault((point.call, point.number), point)
        return list(found.values())


def a_few(points: list[Point]) -> list[Point]:
    """The first, the middle and the last one: quick, and most likely to find something."""
    return [points[at] for at in sorted({0, len(points) // 2, len(points) - 1})]


def walk(subject: Subject, fault: str, points: Sequence[Point]) -> list[str]:
    """Run with a fault at each point: `KILL`, `INT`, `TERM` or an error; return each outcome."""
    number = getattr(signal, f"SIG{fault}", None)
    reason = os.strerror(getattr(errno, fault, 0))
    outcomes = []
    for point in points:
        subject.reset()
        what = f"signal={fault}" if number else f"error={fault}"
        run = subject.run(point.fault(what), "fsync")
        assert run.hit, point
        try:
            if number == signal.SIGKILL:
                assert run.returncode == -number
                outcomes.append(subject.found())
                subject.again(outcomes[-1])
            elif number:
                assert (run.returncode, run.stderr) == (128 + number, subject.interrupt_message)
                outcomes.append(subject.found())
                assert subject.left_overs() == []
            else:
                outcomes.append(OLD if subject.after_failure(run, reason) else NEW)
                assert point.call.startswith("unlink") or subject.left_overs() == []
        except AssertionError as error:
            error.add_note(f"{fault} at {point}: {run.stderr}")
            raise
    # First the old state, then the new one, and never back.
    assert number != signal.SIGKILL or outcomes == sorted(outcomes, key=_ORDER.index)
    return outcomes
