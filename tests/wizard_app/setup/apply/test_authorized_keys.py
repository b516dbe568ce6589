"""Adding SSH keys to the file of a user who controls the folder and may replace it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from platform_common.errors import PlatformError
from platform_common.storage.atomic_write import Owner
from tests.support import odd_files
from tests.support.trees import tree
from wizard_app.setup.apply import authorized_keys
from wizard_app.setup.apply.authorized_keys import add_keys

_ONE, _TWO = "ssh-ed25519 AAAAone a@home", "ssh-ed25519 AAAAtwo b@home"
_AGENT = Owner("agent", "agent")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The file of a user whose home folder exists."""
    home = tmp_path / "home/agent"
    home.mkdir(parents=True)
    return home / ".ssh/authorized_keys"


def _add(place: Path, *lines: str) -> None:
    add_keys(place, lines, mode=0o600, owner=_AGENT)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o77, 0o777])
def test_ssh_06_only_the_user_has_access_to_folder_and_file(place: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        _add(place, _ONE)
    finally:
        os.umask(before)
    assert (_mode(place.parent), _mode(place)) == (0o700, 0o600)
    # A folder that others can enter is closed.
    place.parent.chmod(0o777)
    _add(place, _TWO)
    assert _mode(place.parent) == 0o700


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"{_ONE}\n{_TWO}\n"),
        (f"{_ONE}\n", f"{_ONE}\n{_TWO}\n"),
        (f"  {_TWO} \r\n{_ONE}", f"  {_TWO} \r\n{_ONE}\n"),
        ("# mine\nssh-rsa AAAA other", f"# mine\nssh-rsa AAAA other\n{_ONE}\n{_TWO}\n"),
        (f'command="x" {_ONE}\n', f'command="x" {_ONE}\n{_ONE}\n{_TWO}\n'),
        ("\udcff\n", f"\udcff\n{_ONE}\n{_TWO}\n"),
    ],
)
def test_ssh_04_keys_are_added_after_others_and_only_once(
    place: Path, before: str, after: str
) -> None:
    place.parent.mkdir()
    place.write_bytes(os.fsencode(before))
    for _ in range(2):
        _add(place, _ONE, _TWO, _ONE)
        assert os.fsdecode(place.read_bytes()) == after
    assert _mode(place) == 0o600


@pytest.mark.parametrize("kind", [*odd_files.NOT_REGULAR, *odd_files.LINKS])
def test_ssh_05_anything_but_a_regular_file_is_left_unchanged(place: Path, kind: str) -> None:
    place.parent.mkdir()
    odd_files.make(kind, place)
    before = odd_files.picture(place.parent)
    with pytest.raises(PlatformError) as caught:
        _add(place, _ONE)
    assert odd_files.picture(place.parent) == before
    assert str(place) in caught.value.message
    assert "/proc/self" not in caught.value.message
    assert caught.value.message.count("\n") == 0


@pytest.mark.parametrize(
    "kind", ["link to a folder", "link to a file", "dangling link", "file", "socket"]
)
def test_ssh_05_a_link_or_file_in_place_of_the_folder_is_reported_and_not_followed(
    place: Path, kind: str
) -> None:
    folder, roots = place.parent, place.parent.parent / "root"
    if kind == "link to a folder":
        roots.mkdir(mode=0o755)
        (roots / "authorized_keys").write_text("root's\n")
    elif kind == "link to a file":
        roots.write_text("root's\n")
    if kind == "file":
        folder.write_text("a file")
    elif kind == "socket":
        odd_files.make("socket", folder)
    else:
        folder.symlink_to(roots)
    before = tree(folder.parent)
    with pytest.raises(PlatformError, match=r"/\.ssh is a symbolic link or not a folder$"):
        _add(place, _ONE)
    assert tree(folder.parent) == before


def test_ssh_05_a_folder_of_another_user_is_left_unchanged(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.parent.mkdir(mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(PlatformError, match="belongs to another user"):
        _add(place, _ONE)
    assert _mode(place.parent) == 0o755
    assert list(place.parent.iterdir()) == []


def test_ssh_05_a_replaced_folder_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roots = place.parent.parent / "root"
    roots.mkdir()
    place.parent.mkdir()

    def replace(before: bytes, lines: object) -> bytes:
        place.parent.rename(place.parent.with_name("moved"))
        place.parent.symlink_to(roots)
        return b"new\n"

    monkeypatch.setattr(authorized_keys, "_added", replace)
    _add(place, _ONE)
    assert list(roots.iterdir()) == []
    assert (place.parent.with_name("moved") / place.name).read_text() == "new\n"


def test_leak_06_left_overs_of_a_killed_attempt_are_removed_even_with_another_owner(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.parent.mkdir()
    left = place.with_name(f".{place.name}.4711.0123abcd.tmp")
    left.write_text("x")
    other = place.with_name(".mine.4711.0123abcd.tmp")
    other.write_text("x")
    # Files of this process count as files of the user who was to own them.
    monkeypatch.setattr(authorized_keys, "ids_of", lambda owner: (os.getuid(), -1))
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    _add(place, _ONE)
    assert not left.exists()
    assert other.exists()


def test_a_huge_file_is_left_unchanged(place: Path) -> None:
    place.parent.mkdir()
    with place.open("wb") as file:
        file.truncate(2 << 20)
    with pytest.raises(PlatformError, match="is larger than"):
        _add(place, _ONE)
    assert place.stat().st_size == 2 << 20
