"""Opening and reading only regular files, within a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from platform_common.errors import AccessError
from platform_common.storage.safe_read import descriptor_of, open_regular, read_bounded, read_own
from tests.support.odd_files import NOT_REGULAR, make, picture


@pytest.mark.parametrize("kind", NOT_REGULAR)
def test_fs_07_anything_but_a_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = make(kind, tmp_path / "f")
    before = picture(tmp_path)
    (tmp_path / "link").symlink_to("f")
    for name in ("f", "link"):
        sentence = f"^{tmp_path / name} is not a regular file$"
        with pytest.raises(AccessError, match=sentence), open_regular(tmp_path / name):
            pass
        with pytest.raises(AccessError, match=sentence):
            read_bounded(tmp_path / name, 10)
    with pytest.raises(AccessError, match=f"^{path} is not a regular file$"):
        descriptor_of(path, os.O_RDWR)
    (tmp_path / "link").unlink()
    assert picture(tmp_path) == before


def test_fs_07_a_readable_device_is_refused(tmp_path: Path) -> None:
    # Devices that every machine has and every user can open: two of memory, and both ends of a
    # terminal.
    ours, theirs = os.openpty()
    os.write(ours, b"x\n")
    link = tmp_path / "link"
    for path in (Path("/dev/null"), Path("/dev/zero"), Path("/dev/ptmx"), os.ttyname(theirs)):
        link.symlink_to(path)
        for name in (Path(path), link):
            with pytest.raises(AccessError, match=f"^{name} is not a regular file$"):
                read_bounded(name, 10)
        link.unlink()
    for refuse in (partial(read_own, limit_bytes=10), partial(descriptor_of, flags=os.O_RDWR)):
        with pytest.raises(AccessError, match=r"^/dev/zero is not a regular file$"):
            refuse(Path("/dev/zero"))
    for end in (ours, theirs):
        os.close(end)


def test_fs_03_a_failing_read_is_reported(tmp_path: Path) -> None:
    # The memory of a process is a regular file that cannot be read from its beginning.
    with pytest.raises(AccessError, match=r"^/proc/self/mem: Input/output error$"):
        read_own(Path("/proc/self/mem"), 10)


def test_fs_07_a_link_is_followed_or_refused_as_asked(tmp_path: Path) -> None:
    loop = make("link to itself", tmp_path / "loop")
    for path, why in (
        *((loop, "Too many levels of symbolic links"), (tmp_path / "none", "No such file")),
        (tmp_path / ("n" * 300), "File name too long"),
    ):
        with pytest.raises(AccessError, match=f"^{path}: {why}"):
            read_bounded(path, 10)
    (tmp_path / "f").write_bytes(b"data")
    assert read_own(tmp_path / "f", 4) == b"data"
    (tmp_path / "link").symlink_to("f")
    with open_regular(tmp_path / "link") as descriptor:
        assert os.read(descriptor, 10) == b"data"
    with (
        pytest.raises(AccessError, match="is a symbolic link, not a regular file"),
        open_regular(tmp_path / "link", follow_link=False),
    ):
        pass
    with open_regular(tmp_path / "f", follow_link=False) as descriptor:
        assert os.read(descriptor, 10) == b"data"


def test_the_descriptor_is_closed_even_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(ZeroDivisionError), open_regular(tmp_path / "f") as descriptor:
        raise ZeroDivisionError
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize(("size", "fits"), [(0, True), (99, True), (100, True), (101, False)])
def test_a_file_may_be_as_large_as_its_limit(tmp_path: Path, size: int, *, fits: bool) -> None:
    (tmp_path / "f").write_bytes(b"x" * size)
    if fits:
        assert read_bounded(tmp_path / "f", 100) == b"x" * size
        return
    with pytest.raises(AccessError, match="is larger than 100 bytes"):
        read_bounded(tmp_path / "f", 100)


def test_an_endless_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(AccessError, match="is larger than 1,000,000 bytes"):
        read_bounded(tmp_path / "f", 1_000_000)


def test_a_file_without_read_permission_is_refused(tmp_path: Path) -> None:
    # Root can read everything, so the reader is a process that gives up its privileges.
    (tmp_path / "f").touch(mode=0o000)
    os.mkfifo(tmp_path / "g", mode=0o000)
    program = (
        "import os; from pathlib import Path\n"
        "from platform_common.errors import AccessError\n"
        "from platform_common.storage.safe_read import read_bounded\n"
        "if os.geteuid() == 0: os.setgid(65534), os.setuid(65534)\n"
        "for name in 'fg':\n"
        "    try: read_bounded(Path(name), 10)\n"
        "    except AccessError as error: print(error.message)\n"
    )
    tmp_path.chmod(0o711)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout == "f: Permission denied\ng is not a regular file\n", done.stderr
