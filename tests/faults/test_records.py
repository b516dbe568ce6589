"""Writers of the device's files, with a fault at every system call they make there."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.faults import FaultServer, Run
from tests.support.writers import GROUP_ID, MODE, state

_FOLDER = "device"
_CALL = re.compile(r"[0-9]+ +([a-z_0-9]+)\(")
# No fault, but a log of all calls.
_NONE = "kexec_load:error=EIO"
# What the calls can answer; a full disk also from where nothing is written yet.
_SPACE = ("openat", "write", "fsync", "renameat", "renameat2")
_NAMES = ("openat", "newfstatat", "renameat", "renameat2", "unlinkat", "unlink", "fchmod", "fchown")
_ERRORS = {
    "ENOSPC": _SPACE,
    "EDQUOT": _SPACE,
    "EROFS": _NAMES,
    "EACCES": _NAMES,
    "EMFILE": ("openat",),
}
_LEFT_OVER = ".file.4711.0123abcd.tmp"


class Case(NamedTuple):
    """One change: what there is, what is done, what there is afterwards."""

    old: Mapping[str, bytes]
    way: str
    text: str
    new: Mapping[str, bytes]


_BIG = "new\n" * 5000
CASES = {
    "a record is edited": Case({"file": b"old"}, "edit", _BIG, {"file": _BIG.encode()}),
    "a record is made": Case({}, "edit", "new", {"file": b"new"}),
    "a left-over is swept": Case(
        {"file": b"old", _LEFT_OVER: b"secret"}, "edit", "new", {"file": b"new"}
    ),
    "the first line": Case({}, "append", "1", {"file": b"1\n"}),
    "the next line": Case({"file": b"1\n"}, "append", "2", {"file": b"1\n2\n"}),
    "a line behind a torn one": Case({"file": b"1\n2"}, "append", "3", {"file": b"1\n2\n3\n"}),
    "a file is put aside": Case({"file": b"1\n"}, "put-aside", "aside", {"aside": b"1\n"}),
}


class Change:
    """A case on the disk, to be done again and again."""

    def __init__(self, case: Case, server: FaultServer, parent: Path) -> None:
        self.case = case
        self.folder = parent / _FOLDER
        self._server = server
        self._parent = parent

    def reset(self) -> None:
        """Put the folder back to how it was."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for name, data in self.case.old.items():
            path = self.folder / name
            path.write_bytes(data)
            path.chmod(MODE)
            if os.geteuid() == 0:
                os.chown(path, 0, GROUP_ID)

    def run(self, fault: str | None = None) -> Run:
        """Make the change, with a fault."""
        path = self.folder / "file"
        args = (self.case.way, path, self.case.text)
        also = "all" if fault == _NONE else "fsync"
        return self._server.run(*args, cwd=self._parent, env={}, fault=fault, also_trace=also)

    def points(self) -> Iterator[str]:
        """Every system call on the folder or a file in it: `CALL:%s:when=COUNT`."""
        self.reset()
        seen: Counter[str] = Counter()
        for line in self.run(_NONE).calls:
            if match := _CALL.match(line):
                seen[match[1]] += 1
                if f"/{_FOLDER}" in line:
                    yield f"{match[1]}:%s:when={seen[match[1]]}"

    def kept(self) -> dict[str, bytes]:
        """What there is, without temporary files."""
        return {name: data for name, data in state(self.folder).items() if name[0] != "."}

    def assert_old_or_new(self, *, tidy: bool = True) -> None:
        """Nothing is in between, every mode is right, and with `tidy` nothing is left over."""
        found = state(self.folder) if tidy else self.kept()
        kept = {name: data for name, data in self.case.old.items() if name[0] != "."}
        # A file of lines begins empty, and that is no line.
        assert found in (self.case.old, kept, self.case.new, {"file": b""} if not kept else None)

    def assert_a_new_run_ends_well(self) -> None:
        """What was done is done, or is done now, and nothing is left over."""
        before = self.kept()
        again = self.run()
        done = before == self.case.new
        if self.case.way == "put-aside" and done:
            assert again.stderr == "error: there is nothing to put aside\n"
        else:
            assert (again.returncode, again.stderr) == (0, "")
        found = state(self.folder)
        if self.case.way == "append" and done:
            assert found == {"file": self.case.new["file"] + self.case.text.encode() + b"\n"}
        else:
            assert found == self.case.new


@pytest.fixture(scope="module")
def writers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    """What starts the writers."""
    folder = tmp_path_factory.mktemp("writers")
    with FaultServer(folder, "tests.support.writers", ["ctypes", "grp", "pwd"]) as server:
        yield server


@pytest.fixture(params=CASES)
def change(request: pytest.FixtureRequest, writers: FaultServer, tmp_path: Path) -> Change:
    """Each of the cases."""
    return Change(CASES[request.param], writers, tmp_path)


def test_leak_06_a_writer_killed_at_any_call_leaves_the_old_file_or_the_new_one(
    change: Change,
) -> None:
    points = list(change.points())
    for point in points:
        change.reset()
        killed = change.run(point % "signal=KILL")
        assert (killed.hit, killed.returncode) == (True, -signal.SIGKILL)
        change.assert_old_or_new(tidy=False)
        change.assert_a_new_run_ends_well()
    assert len(points) > 5


@pytest.mark.parametrize("number", ["INT", "TERM"])
def test_fs_11_a_writer_interrupted_at_any_call_leaves_nothing_half_done(
    change: Change, number: str
) -> None:
    for point in change.points():
        change.reset()
        interrupted = change.run(point % f"signal={number}")
        assert interrupted.hit
        assert interrupted.returncode in {"INT": (130,), "TERM": (143,)}[number]
        assert interrupted.stderr == ""
        change.assert_old_or_new()


@pytest.mark.parametrize("error", ["EIO", *_ERRORS])
def test_fs_03_a_call_that_fails_is_told_and_leaves_the_old_file(
    change: Change, error: str
) -> None:
    told = 0
    for point in change.points():
        if point.partition(":")[0] not in _ERRORS.get(error, point):
            continue
        change.reset()
        failed = change.run(point % f"error={error}")
        assert failed.hit
        _assert_no_second_fsync(failed)
        cannot_remove = point.startswith("unlink")
        change.assert_old_or_new(tidy=not cannot_remove)
        if failed.returncode == 0:
            assert change.kept() == change.case.new
            continue
        told += 1
        _assert_one_sentence(failed)
        unsure = "may or may not outlast a power cut" in failed.stderr
        assert unsure == (change.kept() == change.case.new), failed.stderr
    assert told


def _assert_one_sentence(run: Run) -> None:
    first, *others = run.stderr.splitlines()
    assert run.returncode == 1
    assert re.match(r"error: /.*[a-z]$", first), first
    assert "[Errno" not in first
    assert not others or (len(others) == 1 and others[0].startswith("hint: "))


def _assert_no_second_fsync(run: Run) -> None:
    """A later fsync of what could not be written would wrongly say that all is well."""
    fsyncs = [line for line in run.calls if " fsync(" in line]
    failed = [number for number, line in enumerate(fsyncs) if "INJECTED" in line]
    assert not failed or failed[0] == len(fsyncs) - 1


def test_fs_03_an_unlink_that_fails_leaves_a_file_that_the_next_edit_sweeps(
    writers: FaultServer, tmp_path: Path
) -> None:
    change = Change(CASES["a record is edited"], writers, tmp_path)
    change.reset()
    failed = change.run("renameat:error=EIO:when=1 unlinkat:error=EIO:when=1+")
    assert failed.returncode == 1
    left = set(state(change.folder)) - {"file"}
    assert len(left) == 1
    change.assert_a_new_run_ends_well()


def test_a_file_system_that_renames_only_over_what_is_there_or_not_will_do(
    writers: FaultServer, tmp_path: Path
) -> None:
    for name in ("the first line", "a file is put aside"):
        change = Change(CASES[name], writers, tmp_path)
        change.reset()
        assert change.run("renameat2:error=EINVAL:when=1").hit
        assert state(change.folder) == change.case.new
