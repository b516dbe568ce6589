"""Locks between programs."""

from __future__ import annotations

import fcntl
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from platform_common.errors import AccessError
from platform_common.storage.file_lock import LockedError, changing, hold
from tests.support.odd_files import LINKS, NOT_REGULAR, make, picture
from tests.support.own_process import umask


def test_the_lock_is_a_private_file_beside_the_other(tmp_path: Path) -> None:
    with umask(0), changing(tmp_path / "f"):
        pass
    [lock] = tmp_path.iterdir()
    assert lock.name == ".f.lock"
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600


def test_the_second_caller_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def first_goes_on(_: float) -> None:
        # The second caller waits, then checks again.
        waiting.set()

    def second() -> None:
        with changing(tmp_path / "f"):
            done.append("second")

    waiting = threading.Event()
    monkeypatch.setattr(time, "sleep", first_goes_on)
    thread = threading.Thread(target=second)
    with changing(tmp_path / "f"):
        thread.start()
        assert waiting.wait(10)
        done.append("first")
    thread.join(10)
    assert done == ["first", "second"]


def test_waiting_for_a_lock_is_bounded_and_the_lock_ends_with_its_block(tmp_path: Path) -> None:
    with (
        changing(tmp_path / "f"),
        pytest.raises(LockedError, match="f is being changed by another program") as caught,
        changing(tmp_path / "f", wait_s=0.02),
    ):
        pass
    assert caught.value.hint == "Try again when it has finished."
    with pytest.raises(ZeroDivisionError), changing(tmp_path / "f"):
        raise ZeroDivisionError
    with changing(tmp_path / "f", wait_s=0):
        pass


def test_only_the_holder_is_waited_for_not_the_queue_of_our_own_threads(tmp_path: Path) -> None:
    def hold_for_a_while(_: int) -> None:
        with changing(tmp_path / "f", wait_s=1):
            time.sleep(0.25)

    with ThreadPoolExecutor(8) as pool:
        # Raises if one of them gave up.
        list(pool.map(hold_for_a_while, range(8)))


@pytest.mark.parametrize("kind", [*NOT_REGULAR, *LINKS])
def test_fs_07_a_lock_that_is_not_a_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    lock = make(kind, tmp_path / ".f.lock")
    before = picture(tmp_path)
    with (
        pytest.raises(AccessError, match=f"/f cannot be changed: {lock} is "),
        changing(tmp_path / "f"),
    ):
        pass
    assert picture(tmp_path) == before


def test_fs_03_a_lock_that_fails_or_has_no_folder_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(37, "No locks available")

    missing = tmp_path / "none" / "f"
    with pytest.raises(AccessError, match="f: No such file"), changing(missing):
        pass
    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(AccessError, match="f: No locks available"):
        hold(0, tmp_path / "f")
