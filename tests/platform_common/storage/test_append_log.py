"""Appending lines to a file, dropping lines, and putting the file aside."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from platform_common.errors import AccessError
from platform_common.storage import append_log, file_lock
from platform_common.storage.append_log import append_line, drop_lines, put_aside
from platform_common.storage.atomic_write import ExistsError
from platform_common.storage.file_lock import LockedError
from tests.support.odd_files import LINKS, NOT_REGULAR, make, picture
from tests.support.own_process import umask

RenameOnceLocked = Callable[[int], list[Path]]


@contextlib.contextmanager
def held_by_another(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def drop(path: Path, *lines: bytes) -> int:
    return drop_lines(path, lines.__contains__, limit_bytes=1 << 20)


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_the_first_line_creates_the_file_with_its_mode(tmp_path: Path, mask: int) -> None:
    path = tmp_path / "f"
    with umask(mask):
        append_line(path, b"first", mode=0o640)
        append_line(path, b"second", mode=0o600)
        assert path.read_bytes() == b"first\nsecond\n"
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        # The shorter file has that mode again.
        path.chmod(0o666)
        drop(path, b"first")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("there", "afterwards"),
    [
        (b"", b"new\n"),
        (b"whole\n", b"whole\nnew\n"),
        (b"whole\nto", b"whole\nto\nnew\n"),
        (b"\n", b"\nnew\n"),
        (b"\xff\x00", b"\xff\x00\nnew\n"),
    ],
    ids=["empty", "whole", "torn", "an empty line", "not UTF-8"],
)
def test_an_appended_line_never_joins_another_line(
    tmp_path: Path, there: bytes, afterwards: bytes
) -> None:
    (tmp_path / "f").write_bytes(there)
    append_line(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == afterwards


@pytest.mark.parametrize("taken", [0, 3])
def test_fs_01_a_partly_written_line_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    (tmp_path / "f").write_bytes(b"old\n")
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:taken]))
    with pytest.raises(AccessError, match="f: only a part of the line could be written"):
        append_line(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old\n"


def test_a_partly_written_line_that_cannot_be_removed_stays_separate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"old\n")
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:2]))
        patch.setattr(os, "ftruncate", Mock(side_effect=OSError(errno.EIO, "Input/output error")))
        with pytest.raises(AccessError):
            append_line(tmp_path / "f", b"new")
    append_line(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old\nne\nnew\n"


def test_waiting_for_the_lock_of_a_file_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"old\n")
    monkeypatch.setattr(file_lock.hold, "__kwdefaults__", {"wait_s": 0.02})
    with held_by_another(tmp_path / "f"):
        with pytest.raises(LockedError, match="f is being changed by another program"):
            append_line(tmp_path / "f", b"new")
        with pytest.raises(LockedError, match="f is being changed by another program"):
            put_aside(tmp_path / "f", tmp_path / "aside")
    assert (tmp_path / "f").read_bytes() == b"old\n"


def test_failed_calls_create_no_file(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="none/f: No such file or directory"):
        append_line(tmp_path / "none" / "f", b"line")
    with pytest.raises(ValueError, match="a line must not contain a line feed"):
        append_line(tmp_path / "f", b"one\ntwo")
    for missing in (tmp_path / "f", tmp_path / "none" / "f"):
        assert put_aside(missing, tmp_path / "aside") is False
        assert drop(missing, b"b") == 0
    assert list(tmp_path.iterdir()) == []
    append_line(tmp_path / "f", b"line")
    with pytest.raises(AccessError, match="none/aside: No such file or directory"):
        put_aside(tmp_path / "f", tmp_path / "none" / "aside")
    assert (tmp_path / "f").read_bytes() == b"line\n"


# Putting aside.


def test_a_renamed_log_is_the_same_file_under_its_new_name(tmp_path: Path) -> None:
    append_line(tmp_path / "f", b"line", mode=0o640)
    before = (tmp_path / "f").stat()
    (tmp_path / "old").mkdir()
    assert put_aside(tmp_path / "f", tmp_path / "old" / "aside")
    after = (tmp_path / "old" / "aside").stat()
    assert os.path.samestat(before, after)
    assert (after.st_mode, after.st_nlink) == (before.st_mode, 1)
    assert not put_aside(tmp_path / "f", tmp_path / "again")
    append_line(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"new\n"


@pytest.mark.parametrize("kind", [*NOT_REGULAR, *LINKS, "file"])
def test_fs_07_an_existing_file_with_the_target_name_is_kept(tmp_path: Path, kind: str) -> None:
    append_line(tmp_path / "f", b"line")
    aside = tmp_path / "aside"
    if kind == "file":
        aside.write_bytes(b"precious")
    else:
        make(kind, aside)
    before = picture(tmp_path)
    with pytest.raises(ExistsError, match=f"^{aside} already exists and is not overwritten$"):
        put_aside(tmp_path / "f", aside)
    assert picture(tmp_path) == before


@pytest.fixture
def rename_once_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], list[Path]]:
    """Return a function that lets the file be renamed so often, just before it is locked."""
    (tmp_path / "f").write_bytes(b"old\n")
    hold = file_lock.hold

    def away(times: int) -> list[Path]:
        gone: list[Path] = []

        def wait(descriptor: int, locked: Path) -> None:
            if len(gone) < times:
                gone.append(locked.rename(locked.with_name(f"away.{len(gone)}")))
            hold(descriptor, locked)

        monkeypatch.setattr(append_log, "hold", wait)
        return gone

    return away


def test_a_line_is_appended_to_the_file_that_now_has_the_name(
    tmp_path: Path, rename_once_locked: RenameOnceLocked
) -> None:
    gone = rename_once_locked(2)
    append_line(tmp_path / "f", b"new")
    assert [path.read_bytes() for path in gone] == [b"old\n", b""]
    assert (tmp_path / "f").read_bytes() == b"new\n"


def test_a_file_renamed_by_others_is_not_put_aside_and_endless_renames_are_an_error(
    tmp_path: Path, rename_once_locked: RenameOnceLocked
) -> None:
    rename_once_locked(1)
    assert put_aside(tmp_path / "f", tmp_path / "aside") is False
    assert not (tmp_path / "aside").exists()
    rename_once_locked(1000)
    with pytest.raises(LockedError, match="f keeps being renamed by another program"):
        append_line(tmp_path / "f", b"new")


def test_putting_aside_renames_the_file_that_now_has_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"a\nb\n")
    (tmp_path / "new").write_bytes(b"a\n")
    hold = file_lock.hold

    def wait(descriptor: int, locked: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            (tmp_path / "new").rename(locked)
        hold(descriptor, locked)

    monkeypatch.setattr(append_log, "hold", wait)
    assert put_aside(tmp_path / "f", tmp_path / "aside")
    assert (tmp_path / "aside").read_bytes() == b"a\n"


def test_a_file_that_another_program_creates_meanwhile_keeps_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"

    def theirs_first(*_: object, **__: object) -> None:
        path.write_bytes(b"theirs\n")
        raise ExistsError("there it is")

    monkeypatch.setattr(append_log, "create_exclusive", theirs_first)
    append_line(path, b"ours")
    assert path.read_bytes() == b"theirs\nours\n"


# Dropping lines.


@pytest.mark.parametrize(
    ("there", "afterwards", "dropped"),
    [
        (b"", b"", 0),
        (b"a\nb\nc\n", b"a\nc\n", 1),
        (b"b\n", b"", 1),
        (b"b\nb\na\nb\n", b"a\n", 3),
        (b"a\nb", b"a\n", 1),
        (b"b\na", b"a", 1),
        (b"a\n\nb\r\n", b"a\n\nb\r\n", 0),
        (b"\xff\x00\rb\nb\n", b"\xff\x00\rb\n", 1),
    ],
    ids=["empty", "middle", "all", "three", "torn", "other-torn", "none", "not-utf-8"],
)
def test_only_the_unwanted_lines_are_dropped(
    tmp_path: Path, there: bytes, afterwards: bytes, dropped: int
) -> None:
    (tmp_path / "f").write_bytes(there)
    assert drop(tmp_path / "f", b"b") == dropped
    assert (tmp_path / "f").read_bytes() == afterwards
    assert not list(tmp_path.glob("*.tmp"))


def test_a_file_that_is_too_large_is_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"b\n" * 10)
    with pytest.raises(AccessError, match="f is larger than 19 bytes"):
        drop_lines(tmp_path / "f", lambda line: True, limit_bytes=19)
    assert drop_lines(tmp_path / "f", lambda line: True, limit_bytes=20) == 10


def test_fs_01_the_old_file_is_kept_if_the_shorter_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"a\nb\n")
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fchmod", Mock(side_effect=full))
        with pytest.raises(AccessError, match="f: No space left on device"):
            drop(tmp_path / "f", b"b")
    assert (tmp_path / "f").read_bytes() == b"a\nb\n"
    assert not list(tmp_path.glob(".*.tmp"))
    assert drop(tmp_path / "f", b"b") == 1


@pytest.mark.parametrize(("where", "name"), [(os, "pread"), (os, "fsync"), (Path, "lstat")])
def test_fs_03_a_disk_error_under_the_lock_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, name: str
) -> None:
    (tmp_path / "f").write_bytes(b"old\n")
    with monkeypatch.context() as patch:
        patch.setattr(where, name, Mock(side_effect=OSError(errno.EIO, "Input/output error")))
        with pytest.raises(AccessError, match=r"f: Input/output error$"):
            append_line(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old\n"


_DROPPER = """\
import sys
from pathlib import Path
from platform_common.storage.append_log import append_line, drop_lines
path = Path(sys.argv[1])
print("ready", flush=True)
while True:
    append_line(path, b"drop")
    drop_lines(path, b"drop".__eq__, limit_bytes=1 << 20)
"""


def test_a_program_killed_while_dropping_lines_loses_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "f"
    added: list[bytes] = []
    for turn in range(12):
        dropper = subprocess.Popen(
            [sys.executable, "-c", _DROPPER, str(path)], stdout=subprocess.PIPE
        )
        assert dropper.stdout is not None
        dropper.stdout.readline()
        until = time.monotonic() + 0.02 * turn
        while not added or added[-1].split()[0] != b"%d" % turn or time.monotonic() < until:
            line = b"%d keep %d" % (turn, len(added))
            append_line(path, line)
            added.append(line)
        dropper.kill()
        dropper.wait()
        dropper.stdout.close()
        lines = [line for line in path.read_bytes().splitlines() if line != b"drop"]
        assert lines == added
    drop(path, b"drop")
    assert path.read_bytes().splitlines() == added
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".f.lock", "f"]
