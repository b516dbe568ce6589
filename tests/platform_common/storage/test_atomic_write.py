"""Writing whole files."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import stat
import threading
from functools import partial
from pathlib import Path

import pytest

from platform_common.errors import AccessError, PlatformError
from platform_common.storage.atomic_write import (
    ExistsError,
    NotDurableError,
    create_exclusive,
    make_folder,
    write_atomic,
    write_atomic_together,
)
from tests.support.odd_files import LINKS, NOT_REGULAR, make, picture
from tests.support.own_process import limited, umask


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Writing.


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_file_is_written_with_its_mode_whatever_the_umask(
    tmp_path: Path, mode: int, mask: int
) -> None:
    with umask(mask):
        write_atomic(tmp_path / "f", b"x" * 3_000_000, mode=mode)
    assert (tmp_path / "f").read_bytes() == b"x" * 3_000_000
    assert mode_of(tmp_path / "f") == mode
    assert names(tmp_path) == ["f"]


def test_the_mode_is_set_before_the_name_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    rename, fchmod = os.rename, os.fchmod

    def watched_rename(source: str, target: str, **folders: int) -> None:
        seen.append(mode_of(tmp_path / source))
        rename(source, target, **folders)

    def watched_fchmod(descriptor: int, mode: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        fchmod(descriptor, mode)

    monkeypatch.setattr(os, "rename", watched_rename)
    monkeypatch.setattr(os, "fchmod", watched_fchmod)
    with umask(0):
        write_atomic(tmp_path / "f", b"x", mode=0o640)
    assert seen == [0o600, 0o640]


def test_a_new_file_replaces_the_old_one_or_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / ("n" * 255), tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to(path.name)
    with path.open("rb") as reader:
        write_atomic(link, b"of the link")
        assert path.read_bytes() == b"old"
        write_atomic(path, b"new")
        assert reader.read() == b"old"
    assert (path.read_bytes(), link.is_symlink()) == (b"new", False)
    with pytest.raises(AccessError, match=r"none/f: No such file or directory$"):
        write_atomic(tmp_path / "none" / "f", b"x")


def test_several_files_change_together(tmp_path: Path) -> None:
    write_atomic_together({tmp_path / "a": b"1", tmp_path / "b": b"2"}, mode=0o600)
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()) == (b"1", b"2")
    assert mode_of(tmp_path / "b") == 0o600
    assert names(tmp_path) == ["a", "b"]


def test_fs_01_a_full_disk_leaves_the_old_files_and_nothing_else(tmp_path: Path) -> None:
    path, other, new = (tmp_path / name for name in ("a", "b", "new"))
    path.write_bytes(b"old")
    other.write_bytes(b"old")
    much = b"x" * 8192
    for write in (
        partial(write_atomic, path, much),
        partial(write_atomic_together, {other: b"new", path: much}),
        partial(create_exclusive, new, much, mode=0o600),
    ):
        # Every later write fails, as on a full disk.
        full = limited(resource.RLIMIT_FSIZE, 4096)
        with full, pytest.raises(AccessError, match="File too large"):
            write()
        assert (path.read_bytes(), other.read_bytes()) == (b"old", b"old")
        assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("old", [None, b"old"], ids=["new", "existing"])
def test_a_failed_rename_leaves_the_other_files_unchanged(
    tmp_path: Path, old: bytes | None
) -> None:
    (tmp_path / "folder").mkdir()
    if old is not None:
        (tmp_path / "a").write_bytes(old)
    before = names(tmp_path)
    with pytest.raises(AccessError):
        write_atomic_together({tmp_path / "a": b"new", tmp_path / "folder": b"x"})
    assert names(tmp_path) == before
    assert old is None or (tmp_path / "a").read_bytes() == old


@pytest.mark.parametrize("kind", [*NOT_REGULAR, *LINKS])
def test_fs_07_creating_a_file_never_replaces_an_existing_entry(tmp_path: Path, kind: str) -> None:
    create_exclusive(tmp_path / "g", b"first", mode=0o600)
    assert (mode_of(tmp_path / "g"), (tmp_path / "g").read_bytes()) == (0o600, b"first")
    path = make(kind, tmp_path / "f")
    before = picture(tmp_path)
    for there in (path, tmp_path / "g"):
        with pytest.raises(PlatformError, match="already exists and is not overwritten"):
            create_exclusive(there, b"new", mode=0o600)
    assert picture(tmp_path) == before


def test_only_one_of_many_processes_creates_a_file(tmp_path: Path) -> None:
    start = threading.Barrier(8)
    outcomes: list[int | None] = []

    def create(number: int) -> None:
        start.wait(10)
        try:
            create_exclusive(tmp_path / "f", b"%d" % number, mode=0o600)
        except PlatformError:
            outcomes.append(None)
        else:
            outcomes.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    (winner,) = (number for number in outcomes if number is not None)
    assert (tmp_path / "f").read_bytes() == b"%d" % winner
    assert names(tmp_path) == ["f"]


# Failing disks, and file systems with fewer features.


def fail_fsync_of(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make fsync fail for files of the `kind`."""
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        if stat.S_IFMT(os.fstat(descriptor).st_mode) == kind:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)


def test_fs_03_a_write_that_is_not_durable_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"old")
    fail_fsync_of(stat.S_IFREG, monkeypatch)
    with pytest.raises(AccessError, match=r"f: Input/output error$"):
        write_atomic(tmp_path / "f", b"new")
    with pytest.raises(AccessError, match=r"g: Input/output error$"):
        create_exclusive(tmp_path / "g", b"new", mode=0o600)
    assert (tmp_path / "f").read_bytes() == b"old"
    assert names(tmp_path) == ["f"]


def test_fs_03_a_failed_fsync_of_the_folder_is_reported_as_uncertain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_fsync_of(stat.S_IFDIR, patch)
        for name, write in (
            ("f", write_atomic),
            ("g", partial(create_exclusive, mode=0o600)),
        ):
            path = tmp_path / name
            with pytest.raises(NotDurableError) as caught:
                write(path, b"new")
            assert caught.value.message == (
                f"{path} was written, but may not survive a power cut: Input/output error"
            )
            assert caught.value.hint.startswith("Check the disk, then try again")
            assert path.read_bytes() == b"new"
    write_atomic(path, b"newer")


def test_fs_03_a_folder_is_created_durably_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    fail_fsync_of(stat.S_IFDIR, monkeypatch)
    with pytest.raises(AccessError, match=r"c: Input/output error$"):
        make_folder(tmp_path / "c" / "d")


def test_a_file_system_without_exclusive_rename_is_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Libc:
        def renameat2(self, *_: object) -> int:
            ctypes.set_errno(errno.EINVAL)
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc())
    create_exclusive(tmp_path / "f", b"first", mode=0o600)
    with pytest.raises(ExistsError):
        create_exclusive(tmp_path / "f", b"second", mode=0o600)
    assert (tmp_path / "f").read_bytes() == b"first"
    assert (tmp_path / "f").stat().st_nlink == 1
    assert names(tmp_path) == ["f"]
