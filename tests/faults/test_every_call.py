"""Every subject with every fault at every system call, or in the short version at three."""

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

# The errors that calls can return; a full disk also for calls that write nothing themselves.
_SPACE = "openat write fsync renameat renameat2"
_NAMES = "openat newfstatat renameat renameat2 unlinkat unlink fchmod fchown"
# The faults of each subject, and at which calls; "" means all its relevant calls.
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
# Every action of setup makes at least one of these calls.
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
# Subjects that change two files, a manifest and its signature.
_PAIRS = ("publish: build", "publish: sign", "publish: rebuild")
_KINDS = {"KILL": "killed", "INT": "interrupted", "TERM": "interrupted"}
# The threat rows that a row proves as well, by the kind of its subject.
_PROVES: dict[str, dict[str, str]] = {
    "killed": {"publish": "pub_04", "chat": "chat_06", "name": "wiz_04", "set up": "wiz_09"},
    "failed": {"chat": "chat_07", "name": "wiz_03", "set up": "wiz_05 fs_04"},
    "interrupted": {},
}


class Row(NamedTuple):
    """A fault in a subject, and the calls at which it occurs."""

    subject: str
    fault: str
    calls: str

    @property
    def kind(self) -> str:
        """What the fault does to the run."""
        return _KINDS.get(self.fault, "failed")

    def points(self, subject: Subject) -> list[Point]:
        """The calls at which the fault occurs."""
        points = [one for one in subject.points if not self.calls or one.call in self.calls.split()]
        if self.kind == "failed" and isinstance(subject, Chatting | Naming):
            # With strace a failing close does not close the file; a real kernel closes it anyway.
            return [point for point in points if point.call != "close"]
        if self.kind == "failed" and isinstance(subject, SettingUp):
            # Most calls concern the journal, and are alike there.
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
def test_leak_06_a_kill_at_any_call_leaves_the_old_or_the_new_state(
    subject_of: SubjectOf, row: Row, which: Which
) -> None:
    points = row.points(subject := subject_of(row.subject))
    outcomes = walk(subject, row.fault, which(points))
    assert outcomes[0] == OLD
    assert len(points) > {SettingUp: 320, Publishing: 3}.get(type(subject), 5)
    torn = [point.call for point, found in zip(points, outcomes, strict=False) if found == TORN]
    if which is list:
        # Between the renames of a signature and of its file.
        assert torn == ["renameat"] * (row.subject in _PAIRS)


@pytest.mark.parametrize(("row", "which"), [*_rows("interrupted")])
def test_fs_11_an_interrupt_at_any_call_leaves_nothing_half_done(
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
        assert not isinstance(subject, SettingUp) or len(subject.reported) > 3


@pytest.mark.parametrize(
    "name", ["new", *(pytest.param(name, marks=pytest.mark.long) for name in [*SETUPS][1:])]
)
def test_leak_05_every_new_file_is_private_until_it_is_complete(
    subject_of: SubjectOf, name: str
) -> None:
    subject = subject_of(f"set up: {name}")
    assert isinstance(subject, SettingUp)
    # With a umask of 0.
    made = [point.line for point in subject.calls if "O_CREAT" in point.line]
    assert len(made) > 10
    for line in made:
        assert f"{subject.out}/" in line
        assert "|O_EXCL" in line or '.lock"' in line
        assert ", 0600) = " in line


@pytest.mark.parametrize("fault", ["KILL", "INT", "EIO"])
def test_a_faulty_writer_is_detected(programs: FaultServer, memory: Path, fault: str) -> None:
    change = Change({"file": b"old"}, "overwrite", "new", {"file": b"new"})
    subject = Writing(programs, memory, change)
    with pytest.raises(AssertionError, match="file"):
        walk(subject, fault, subject.points)


def test_fs_03_a_failed_unlink_leaves_a_file_that_the_next_edit_removes(
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


def test_fs_03_a_disk_that_keeps_failing_leaves_the_old_release(
    subject_of: SubjectOf,
) -> None:
    subject = subject_of("publish: build")
    for count in range(1, 6):
        subject.reset()
        # From the n-th call on all of them fail, including those of the error handling.
        run = subject.run(f"fsync,renameat:error=EIO:when={count}+")
        assert run.returncode == 5
        assert (subject.found(), subject.left_overs()) == (OLD, [])


def test_fs_01_a_short_write_loses_no_byte(subject_of: SubjectOf) -> None:
    subject = subject_of("publish: build")
    subject.reset()
    # The first write of every thread writes nothing and returns an interruption.
    run = subject.run("write:error=EINTR:when=1..3")
    assert run.returncode == 0, run.stderr
    assert subject.found() == NEW


def test_left_overs_of_a_killed_build_are_removed_and_similar_files_are_kept(
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
