"""What killed and interrupted writers leave behind, and which of it is removed."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from platform_common.errors import AccessError
from platform_common.storage.stale_files import (
    remove_left_overs,
    signals_held,
    temporary_name,
)
from tests.support.process_users import another_user


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_only_our_own_left_overs_are_removed(tmp_path: Path) -> None:
    (tmp_path / temporary_name("manifest.json")).touch()
    (tmp_path / temporary_name("a folder")).mkdir()
    (tmp_path / temporary_name("a folder") / "x").parent.mkdir()
    kept = [".a.tmp", "a.1.01234567.tmp", ".a.1.0123456.tmp", ".a.1.01234567.tmp.xz", "f"]
    for name in kept:
        (tmp_path / name).touch()
    (tmp_path / temporary_name("link")).symlink_to(tmp_path / "f")
    remove_left_overs(tmp_path)
    left = names(tmp_path)
    assert set(kept) <= set(left)
    assert [name for name in left if name not in kept] == [
        path.name for path in tmp_path.iterdir() if path.is_symlink()
    ]


def test_leak_06_for_one_name_only_its_regular_files_are_removed(tmp_path: Path) -> None:
    kept = {temporary_name("other"), temporary_name("name.toml"), "name", ".name.lock"}
    for name in (*kept, temporary_name("name"), temporary_name("name")):
        (tmp_path / name).touch()
    (tmp_path / temporary_name("n" * 255)).touch()
    remove_left_overs(tmp_path, of_name="n" * 255)
    folder, link = (tmp_path / temporary_name("name") for _ in range(2))
    folder.mkdir()
    link.symlink_to("name")
    remove_left_overs(tmp_path, of_name="name")
    assert set(names(tmp_path)) == kept | {folder.name, link.name}
    for missing in (tmp_path / "none", tmp_path / "name"):
        remove_left_overs(missing)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(AccessError, match="loop: Too many levels of symbolic links"):
        remove_left_overs(tmp_path / "loop")


def test_leak_06_files_of_other_users_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / temporary_name("f")
    theirs.touch()
    with another_user(tmp_path, monkeypatch):
        remove_left_overs(Path())
        remove_left_overs(Path(), of_name="f")
    assert names(tmp_path) == [theirs.name]


def test_a_left_over_that_just_disappeared_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its writer renames it between our listing of the folder and our look at the file.
    path = tmp_path / temporary_name("f")
    path.touch()

    def remove_and_return(user: int = os.geteuid()) -> int:
        path.unlink(missing_ok=True)
        return user

    monkeypatch.setattr(os, "geteuid", remove_and_return)
    remove_left_overs(tmp_path)
    assert names(tmp_path) == []


def test_a_signal_is_delivered_after_the_block_and_not_lost() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt), signals_held():  # noqa: PT012 - what is interrupted
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the block is what is interrupted
        with signals_held():
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("behind")
    assert done == ["inside"]


def test_signals_are_held_only_on_the_main_thread() -> None:
    seen: list[object] = []

    def inside() -> None:
        with signals_held():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join(10)
    assert seen == [signal.default_int_handler]
