"""Every subject with every fault at every system call, or, where it must be quick, at three."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.subjects import (
    CHANGES,
    CHATS,
    Change,
    Chatting,
    Naming,
    Publishing,
    SettingUp,
    SubjectOf,
    Writing,
)
from tests.faults.walks import NEW, OLD, TORN, Point, Subject, a_few, walk
from tests.support.apply_setups import JOURNAL, SETUPS
from tests.support.faults import FaultServer, Site

# What the calls can answer; a full disk also from where nothing is written yet.
_SPACE = "openat write fsync renameat renameat2"
_NAMES = "openat newfstatat renameat renameat2 unlinkat unlink fchmod fchown"
# Of each subject, which fault at which calls; "" is all that it is about.
_PUBLISH = {
    "publish: build": {
        "KILL": "mkdir openat linkat write fchmod fsync rename renameat unlink",
        "INT": "mkdir openat linkat write fsync rename renameat unlinkat",
        "EIO": "openat linkat write fsync renameat flock readv",
        "ENOSPC": "mkdir linkat write fsync",
        "EROFS": "mkdir rename renameat unlink",
        "EACCES": "openat renameat",
        "EMFILE": "openat",
        "EDQUOT": "write",
    },
    "publish: sign": {
        "KILL": "openat write fsync renameat unlink",
        "INT": "write fsync renameat",
        "EIO": "openat fsync renameat",
        "ENOSPC": "write",
    },
    "publish: rebuild": {"KILL": "renameat"},
    "publish: first build": {"KILL": "renameat fsync"},
}
_WRITE = {
    **dict.fromkeys(("KILL", "INT", "TERM", "EIO"), ""),
    **dict.fromkeys(("ENOSPC", "EDQUOT"), _SPACE),
    **dict.fromkeys(("EROFS", "EACCES"), _NAMES),
    "EMFILE": "openat",
}
_CHAT_ERRORS = dict.fromkeys(("EIO", "ENOSPC", "EROFS", "EACCES"), "")
_NAMING = {
    "KILL": "",
    "EIO": "",
    "ENOSPC": "openat write fsync renameat",
    "EROFS": "openat renameat unlinkat fchmod fchown",
    "EACCES": "openat renameat fchmod",
}
# Somewhere in every action of setting up there is one of these.
_SET_UP_ERRORS = {
    "ENOSPC": "write",
    "EROFS": "openat mkdir mkdirat",
    "EACCES": "renameat renameat2 fchmod",
    "EIO": "fsync unlinkat",
    "EDQUOT": "renameat renameat2 mkdir mkdirat",
}
_TABLE: dict[str, dict[str, str]] = {
    **_PUBLISH,
    **{f"write: {name}": _WRITE for name in CHANGES},
    **{f"chat: {name}": {"KILL": ""} for name in CHATS},
    **{f"chat: {name}": {"KILL": "", **_CHAT_ERRORS} for name in ("the next turn", "cleared")},
    "name": _NAMING,
    **{f"set up: {name}": {"KILL": ""} for name in SETUPS},
    "set up: new": {"KILL": "", **_SET_UP_ERRORS},
}
# Subjects that change two names, a signature and what it signs.
_PAIRS = ("publish: build", "publish: sign", "publish: rebuild")
_KINDS = {"KILL": "killed", "INT": "interrupted", "TERM": "interrupted"}
# What else a row proves, by its subject's kind.
_PROVES: dict[str, dict[str, str]] = {
    "killed": {"publish": "pub_04", "chat": "chat_06", "name": "wiz_04", "set up": "wiz_09"},
    "failed": {"chat": "chat_07", "name": "wiz_03", "set up": "wiz_05 fs_04"},
    "interrupted": {},
}


class Row(NamedTuple):
    """A fault in a subject, and at which of its calls."""

    subject: str
    fault: str
    calls: str

    @property
    def kind(self) -> str:
        """What becomes of the run."""
        return _KINDS.get(self.fault, "failed")

    def points(self, subject: Subject) -> list[Point]:
        """Where the fault takes place."""
        points = [one for one in subject.points if not self.calls or one.call in self.calls.split()]
        if self.kind == "failed" and isinstance(subject, Chatting | Naming):
            # strace lets a close that fails not happen at all; a kernel closes all the same.
            return [point for point in points if point.call != "close"]
        if self.kind == "failed" and isinstance(subject, SettingUp):
            # Most are on the journal, where one is like the other.
            journal = [point for point in points if JOURNAL in point.line]
            return [point for point in points if point not in journal][::3] + journal[::15]
        return points


def _rows(kind: str) -> Iterator[object]:
    for name, faults in _TABLE.items():
        for row in (Row(name, fault, calls) for fault, calls in faults.items()):
            proves = _PROVES[kind].get(name.partition(":")[0], "")
            if row.kind == kind:
                title = f"{proves} {name} {row.fault}".strip()
                yield pytest.param(row, a_few, id=f"{title} at a few")
                yield pytest.param(row, list, id=f"{title} at all", marks=pytest.mark.long)


Which = Callable[[list[Point]], list[Point]]


@pytest.mark.parametrize(("row", "which"), [*_rows("killed")])
def test_leak_06_killed_at_any_call_everything_is_as_before_or_as_afterwards(
    subject_of: SubjectOf, row: Row, which: Which
) -> None:
    points = row.points(subject := subject_of(row.subject))
    outcomes = walk(subject, row.fault, which(points))
    assert outcomes[0] == OLD
    assert len(points) > {SettingUp: 320, Publishing: 3}.get(type(subject), 5)
    torn = [point.call for point, found in zip(points, outcomes, strict=False) if found == TORN]
    if which is list:
        # Between the renames of a signature and of what it signs.
        assert torn == ["renameat"] * (row.subject in _PAIRS)


@pytest.mark.parametrize(("row", "which"), [*_rows("interrupted")])
def test_fs_11_interrupted_at_any_call_nothing_is_left_half_done(
    subject_of: SubjectOf, row: Row, which: Which
) -> None:
    subject = subject_of(row.subject)
    outcomes = walk(subject, row.fault, which(row.points(subject)))
    assert outcomes[0] == OLD
    assert set(outcomes) <= {OLD, NEW}


@pytest.mark.parametrize(("row", "which"), [*_rows("failed")])
def test_fs_03_a_failing_call_is_reported_and_changes_nothing(
    subject_of: SubjectOf, row: Row, which: Which
) -> None:
    subject = subject_of(row.subject)
    outcomes = walk(subject, row.fault, which(row.points(subject)))
    if which is list:
        assert OLD in outcomes
        assert not isinstance(subject, SettingUp) or len(subject.told) > 3


@pytest.mark.parametrize(
    "name", ["new", *(pytest.param(name, marks=pytest.mark.long) for name in [*SETUPS][1:])]
)
def test_leak_05_every_new_file_is_for_its_owner_alone_until_it_is_whole(
    subject_of: SubjectOf, name: str
) -> None:
    subject = subject_of(f"set up: {name}")
    assert isinstance(subject, SettingUp)
    # With a umask that takes nothing away.
    made = [point.line for point in subject.calls if "O_CREAT" in point.line]
    assert len(made) > 10
    for line in made:
        assert f"{subject.out}/" in line
        assert "|O_EXCL" in line or '.lock"' in line
        assert ", 0600) = " in line


@pytest.mark.parametrize("fault", ["KILL", "INT", "EIO"])
def test_a_writer_that_does_not_do_it_right_is_found_out(
    programs: FaultServer, memory: Path, fault: str
) -> None:
    change = Change({"file": b"old"}, "overwrite", "new", {"file": b"new"})
    subject = Writing(programs, memory, change)
    with pytest.raises(AssertionError, match="file"):
        walk(subject, fault, subject.points)


def test_fs_03_an_unlink_that_fails_leaves_a_file_that_the_next_edit_sweeps(
    subject_of: SubjectOf,
) -> None:
    subject = subject_of("write: a record is edited")
    subject.reset()
    failed = subject.run("renameat:error=EIO:when=1 unlinkat:error=EIO:when=1+")
    assert failed.returncode == 1
    assert len(subject.left_overs()) == 1
    subject.again(subject.found())


@pytest.mark.parametrize("change", ["the first line", "a file is put aside"])
def test_a_file_system_without_exclusive_rename_works(subject_of: SubjectOf, change: str) -> None:
    subject = subject_of(f"write: {change}")
    subject.reset()
    assert subject.run("renameat2:error=EINVAL:when=1").hit
    assert (subject.found(), subject.left_overs()) == (NEW, [])


def test_fs_03_a_disk_that_fails_from_some_write_on_leaves_the_old_release(
    subject_of: SubjectOf,
) -> None:
    subject = subject_of("publish: build")
    for count in range(1, 6):
        subject.reset()
        # From the n-th on all of them fail: the one that tells of it, too.
        run = subject.run(f"fsync,renameat:error=EIO:when={count}+")
        assert run.returncode == 5
        assert (subject.found(), subject.left_overs()) == (OLD, [])


def test_fs_01_a_short_write_loses_no_byte(subject_of: SubjectOf) -> None:
    subject = subject_of("publish: build")
    subject.reset()
    # The first write of every thread takes nothing and says so with an interruption.
    run = subject.run("write:error=EINTR:when=1..3")
    assert run.returncode == 0, run.stderr
    assert subject.found() == NEW


def test_a_left_over_of_a_killed_build_goes_and_a_stranger_that_only_looks_so_stays(
    subject_of: SubjectOf, site: Site
) -> None:
    subject = subject_of("publish: build")
    subject.reset()
    channel = site.dist / "stable"
    left_over = channel / ".2026.11.2.4711.0123abcd.tmp"
    left_over.mkdir()
    (left_over / "artefact").write_bytes(b"half")
    (channel / ".manifest.json.4711.0123abcd.tmp").write_bytes(b"half")
    link = channel / ".link.4711.0123abcd.tmp"
    link.symlink_to(site.folder)
    (channel / ".notes.tmp").mkdir()
    built = subject.run()
    assert built.returncode == 0, built.stderr
    assert {path.name for path in channel.glob(".*")} == {link.name, ".notes.tmp"}
