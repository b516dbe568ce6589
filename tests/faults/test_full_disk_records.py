"""A disk that is full, or that takes nothing at all, under the writers of the device's files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faults import Disk, small_disk
from tests.support.writers import MODE, state

_ROOT = Path(__file__).parents[2]
_PAGE = 4096


def _write(prefix: list[str], *args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, "-m", "tests.support.writers", *args],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def _assert_told(ended: subprocess.CompletedProcess[str], path: Path, *reasons: str) -> None:
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: {path}")
    assert ended.stderr.rstrip().endswith(reasons), ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small disk."""
    with small_disk(tmp_path / "disk") as disk:
        yield disk


@pytest.mark.parametrize("way", ["edit", "append"])
def test_fs_01_a_full_disk_keeps_what_is_there_and_works_again_when_there_is_room(
    disk: Disk, way: str
) -> None:
    folder = disk.folder / "device"
    folder.mkdir()
    path = folder / "file"
    assert _write([], way, path, "old").returncode == 0
    old = state(folder)
    text = "n" * (3 * _PAGE)
    for left in (0, _PAGE, 2 * _PAGE):
        full = _write(disk.fill(left), way, path, text)
        _assert_told(
            full, path, "No space left on device", "File too large", "only a part of the line"
        )
        assert state(folder) == old
    (disk.folder / ".filler").unlink(missing_ok=True)
    assert _write([], way, path, text).returncode == 0
    new = text.encode() if way == "edit" else old["file"] + text.encode() + b"\n"
    assert state(folder) == {"file": new}


@pytest.mark.parametrize("way", ["edit", "append", "put-aside"])
@pytest.mark.parametrize("there", [True, False], ids=["existing", "missing"])
def test_fs_02_a_read_only_disk_is_told_and_nothing_changes(
    tmp_path: Path, way: str, *, there: bool
) -> None:
    path = tmp_path / "file"
    if there:
        assert _write([], "append", path, "old").returncode == 0
    old = state(tmp_path)
    # A mount that this process alone sees, and that is gone with it.
    mount = f"mount --bind '{tmp_path}' '{tmp_path}' && mount -o remount,bind,ro '{tmp_path}'"
    shell = ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    refused = _write(shell, way, path, "new")
    if way == "put-aside" and not there:
        assert refused.stderr == "error: there is nothing to put aside\n"
    else:
        _assert_told(refused, path, "Read-only file system")
    assert state(tmp_path) == old
    if there:
        assert path.stat().st_mode & 0o777 == MODE
