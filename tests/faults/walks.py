"""Repeats an operation, each time with a fault at another system call.

A subject says what runs, what there is before it, and what must hold afterwards; a walk takes
its system calls one by one. What must hold is the same for all of them:

- killed: everything is as before or as afterwards, a new run ends well;
- interrupted: the same, and nothing is left over;
- after a call that failed: the same, and it was told in one sentence, or was not needed.
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
# It is done all the same, and is not known to last, or could not be said.
DONE = re.compile(f"{UNSURE}|^error: reading or writing: ")


class Point(NamedTuple):
    """A system call: its name, how many of that name its thread made, and strace's line."""

    call: str
    number: int
    line: str

    def fault(self, what: str) -> str:
        """For strace: the fault `what` at this call."""
        return f"{self.call}:{what}:when={self.number}"


class Subject(Protocol):
    """What a walk is about: its program's command line, and what there is on the disk."""

    server: FaultServer
    folder: Path
    args: Sequence[str | Path]
    env: dict[str, str]
    # Of a failed run, and of an interrupted one.
    told_by: int = 1
    last_words: str = ""
    user: int | None = None

    def __init__(self, server: FaultServer, folder: Path, args: Sequence[str | Path]) -> None:
        self.server, self.folder, self.args = server, folder, args
        self.env = {}

    def reset(self) -> None:
        """Put everything back to how it was."""

    def concerns(self, call: str, line: str) -> bool:
        """Whether a call is one of those that may do harm."""

    def found(self) -> str:
        """Whether everything is `OLD` or `NEW`; fails for what is in between, or is torn."""

    def left_overs(self) -> list[str]:
        """What a writer left unfinished."""

    def again(self, found: str) -> None:
        """A new run, after a kill that left what was found, ends well."""

    def sentence(self, run: Run) -> str:
        """What a run that failed said about it; "" when it did not fail."""
        if run.returncode == 0:
            return ""
        assert run.returncode == self.told_by, run.stderr
        first, *others = run.stderr.splitlines()
        assert re.fullmatch(r"error: .*[^.]", first), first
        assert "[Errno" not in first
        assert [line[:6] for line in others] in ([], ["hint: "]), run.stderr
        return first

    def after_failure(self, run: Run, reason: str) -> bool:
        """What must hold after a run in which a call failed for `reason`; whether it was told."""
        why = self.sentence(run)
        # What was not told was not needed.
        assert self.found() == (NEW if not why or DONE.search(why) else OLD), why
        return bool(why)

    def run(self, fault: str | None = None, also_trace: str = "") -> Run:
        """Do it, with a fault when given."""
        how = {"cwd": self.folder, "env": self.env, "user": self.user, "fault": fault}
        return self.server.run(*self.args, **how, also_trace=also_trace)

    @cached_property
    def calls(self) -> list[Point]:
        """Every system call of what is tested, in their order."""
        # Once more than is looked at, as Python compiles what it imports for the first time.
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
                # As strace counts: the calls of each thread on their own.
                seen[match[1], match[2]] += 1
                found.append(Point(match[2], seen[match[1], match[2]], line))
        return found

    @cached_property
    def points(self) -> list[Point]:
        """Those calls that it is about, each once."""
        found: dict[tuple[str, int], Point] = {}
        for point in self.calls:
            if self.concerns(point.call, point.line):
                found.setdefault((point.call, point.number), point)
        return list(found.values())


def a_few(points: list[Point]) -> list[Point]:
    """The first, the last and the middle one: what is quick, and meets most."""
    return [points[at] for at in sorted({0, len(points) // 2, len(points) - 1})]


def walk(subject: Subject, fault: str, points: Sequence[Point]) -> list[str]:
    """Do it with a fault at each point: `KILL`, `INT`, `TERM` or an error; how each came out."""
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
                assert (run.returncode, run.stderr) == (128 + number, subject.last_words)
                outcomes.append(subject.found())
                assert subject.left_overs() == []
            else:
                outcomes.append(OLD if subject.after_failure(run, reason) else NEW)
                assert point.call.startswith("unlink") or subject.left_overs() == []
        except AssertionError as error:
            error.add_note(f"{fault} at {point}: {run.stderr}")
            raise
    # First as before, then as afterwards, and never back.
    assert number != signal.SIGKILL or outcomes == sorted(outcomes, key=_ORDER.index)
    return outcomes
