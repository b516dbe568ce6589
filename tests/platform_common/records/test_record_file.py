"""Reading records from files, and writing them."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from platform_common.errors import AccessError
from platform_common.formats.decode import DecodingError
from platform_common.paths import Found
from platform_common.records import record_file
from platform_common.records.record_file import MissingRecordError, RecordError
from platform_common.storage.atomic_write import Owner
from platform_common.storage.stale_files import temporary_name
from tests.support.odd_files import make
from tests.support.own_process import umask
from tests.support.process_users import another_user

ROOT = Owner("root", "root")
DAEMON = Owner("root", "daemon")


def replace(path: Path, data: bytes = b"new", owner: Owner = ROOT) -> None:
    record_file.replace(path, data, mode=0o640, owner=owner)


def refuse(data: object) -> bytes:
    raise DecodingError("providers[0].id: is missing")


# Reading.


def test_a_record_is_the_result_of_its_parser(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"data")
    assert record_file.read(Found(tmp_path / "f"), bytes.upper) == b"DATA"


def test_an_error_names_the_file_once_and_the_place(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch()
    with pytest.raises(RecordError) as caught:
        record_file.read(Found(path), refuse)
    assert caught.value.message == f"{path}: providers[0].id: is missing"

    def parse(data: bytes) -> bytes:
        raise RecordError("as it is", hint="And this.")

    with pytest.raises(RecordError, match=r"^as it is$") as caught:
        record_file.read(Found(path), parse)
    assert caught.value.hint == "And this."


def test_a_missing_record_is_distinguished_from_a_broken_one(tmp_path: Path) -> None:
    with pytest.raises(MissingRecordError, match="none: there is no such file"):
        record_file.read(Found(tmp_path / "none"), bytes)
    assert record_file.read_line(tmp_path / "none") is None


def test_a_shipped_record_may_be_a_link_as_installers_make_them(tmp_path: Path) -> None:
    for kind in ("symbolic link", "hard link"):
        path = make(kind, tmp_path / kind)
        assert record_file.read(Found(path, shipped=True), bytes) == b"precious\n"


def test_a_record_larger_than_a_mebibyte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * (1 << 20))
    assert len(record_file.read(Found(path), bytes)) == 1 << 20
    path.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(RecordError, match="f is larger than 1,048,576 bytes"):
        record_file.read(Found(path), bytes)


@pytest.mark.parametrize("text", ["word", "word\n", "two words", "ünï\n"])
def test_a_one_line_file_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "f").write_text(text, "utf-8")
    assert record_file.read_line(tmp_path / "f") == text.strip()


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"word\n\n", b"a\nb\n", b" word\n", b"word \n", b"a\tb\n", b"a\0\n", b"\xff\n"],
)
def test_anything_else_is_not_a_one_line_file(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(RecordError, match=f"^{tmp_path / 'f'}: "):
        record_file.read_line(tmp_path / "f")


# Writing.


def test_a_record_is_created_with_its_folder_mode_and_owner(tmp_path: Path) -> None:
    path = tmp_path / "etc" / "platform" / "f"
    with umask(0):
        replace(path, owner=DAEMON)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.geteuid() or path.stat().st_gid == 1
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert sorted(item.name for item in path.parent.iterdir()) == [".f.lock", "f"]


def test_an_edit_gets_the_old_bytes_and_repairs_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o666)
    record_file.edit(path, lambda data: (data or b"") + b"+", mode=0o600, owner=ROOT)
    assert path.read_bytes() == b"old+"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_owner_is_only_changed_by_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with another_user(tmp_path, monkeypatch):
        replace(Path("f"), owner=DAEMON)
        assert Path("f").stat().st_gid == os.getegid()
    # An owner that does not exist on this machine is not set either.
    replace(tmp_path / "g", owner=Owner("nobody-like-this", "no-such-group"))
    assert (tmp_path / "g").stat().st_uid == os.geteuid()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (refuse, "f: providers.0..id: is missing$"),
        (lambda _: b"x" * ((1 << 20) + 1), "f would become larger than 1,048,576 bytes$"),
    ],
    ids=["refused", "too large"],
)
def test_a_change_that_cannot_be_made_leaves_the_record(
    tmp_path: Path, change: object, sentence: str
) -> None:
    replace(tmp_path / "f", b"old")
    with pytest.raises(RecordError, match=sentence):
        record_file.edit(tmp_path / "f", change, mode=0o640, owner=ROOT)  # type: ignore[arg-type] # a table of functions
    assert (tmp_path / "f").read_bytes() == b"old"


def test_leak_06_an_edit_removes_left_overs_of_killed_writers_of_this_record(
    tmp_path: Path,
) -> None:
    (tmp_path / temporary_name("f")).write_bytes(b"secret")
    (tmp_path / temporary_name("f")).write_bytes(b"secret")
    other = tmp_path / temporary_name("g")
    other.write_bytes(b"somebody is writing this")
    replace(tmp_path / "f")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".f.lock", other.name, "f"]


@pytest.mark.parametrize("name", ["file/f", "file/folder/f"])
def test_a_path_that_is_not_a_folder_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(AccessError, match=r"file.*: Not a directory$"):
        replace(tmp_path / name)


def test_env_08_and_leak_05_a_record_never_has_another_mode_or_owner(tmp_path: Path) -> None:
    seen: set[tuple[bool, int, int]] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for entry in os.scandir(tmp_path):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                private = entry.name.startswith(".")
                seen.add((private, stat.S_IMODE(status.st_mode), status.st_gid))

    group = 1 if os.geteuid() == 0 else os.getegid()
    with umask(0), ThreadPoolExecutor() as pool:
        looking = pool.submit(look)
        for number in range(200):
            replace(tmp_path / "f", b"%d" % number, DAEMON)
        over.set()
        looking.result(10)
    assert {who for who in seen if not who[0]} == {(False, 0o640, group)}
    assert {who for who in seen if who[0]} <= {
        (True, 0o600, os.getegid()),
        (True, 0o600, group),
        (True, 0o640, group),
    }
