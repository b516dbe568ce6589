"""Root and another user in one sticky folder, such as /run/platform and /var/lib/platform."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.distributions import ROOT
from platform_common.paths import Paths
from platform_common.records import record_file
from platform_common.storage.atomic_write import Owner, write_atomic
from platform_common.storage.file_lock import LockedError, changing
from platform_common.storage.stale_files import remove_left_overs, temporary_name
from tests.support.process_users import as_user
from wizard_app.access.token_file import TokenFile
from wizard_app.setup.apply.executor import execute, tidy
from wizard_app.setup.apply.journal import Entry, Journal, forget, read_attempt

USER = 61235


@pytest.fixture
def shared() -> Iterator[Path]:
    # Not below tmp_path, which only its owner can enter.
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 0, USER)
        # In a sticky folder, users can only remove their own files.
        Path(folder).chmod(0o1770)
        yield Path(folder)


@contextlib.contextmanager
def as_root_or(user: int) -> Iterator[None]:
    """Be root, or become that user, until the block ends."""
    with as_user(user) if user else contextlib.nullcontext():
        yield


@pytest.mark.parametrize("first", [0, USER])
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_either_user_can_change_a_file_whoever_created_the_lock(
    shared: Path, first: int, umask: int
) -> None:
    before = os.umask(umask)
    try:
        for user in (first, USER - first, first):
            with as_root_or(user), changing(shared / "f", wait_s=0):
                pass
    finally:
        os.umask(before)
    [lock] = shared.iterdir()
    assert lock.stat().st_mode & 0o007 == 0


@pytest.mark.parametrize("first", [0, USER])
def test_the_lock_of_one_user_excludes_the_other(shared: Path, first: int) -> None:
    with contextlib.ExitStack() as held:
        with as_root_or(first):
            held.enter_context(changing(shared / "f"))
        with (
            as_root_or(USER - first),
            pytest.raises(LockedError),
            changing(shared / "f", wait_s=0),
        ):
            pass


@pytest.mark.parametrize("first", [0, USER])
def test_an_existing_lock_is_never_opened_with_o_creat(shared: Path, first: int) -> None:
    """With fs.protected_regular=2, even root cannot do that with another user's file."""
    with as_root_or(first), changing(shared / "f"):
        pass
    script = (
        "import sys; from pathlib import Path\n"
        "from platform_common.storage.file_lock import changing\n"
        "with changing(Path(sys.argv[1])): pass"
    )
    strace = ("strace", "-f", "-e", "trace=openat", "-P", str(shared / ".f.lock"))
    words = (*strace, sys.executable, "-c", script, str(shared / "f"))
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    opened = [line for line in done.stderr.splitlines() if "openat(" in line]
    assert opened
    assert [line for line in opened if "O_CREAT" in line] == []


def test_leak_06_an_unfinished_lock_of_a_killed_program_is_removed_by_the_next(
    shared: Path,
) -> None:
    (shared / temporary_name(".f.lock")).touch()
    with changing(shared / "f"):
        pass
    assert [path.name for path in shared.iterdir()] == [".f.lock"]


def test_leak_06_left_overs_of_other_users_are_kept_silently(shared: Path) -> None:
    left = shared / temporary_name("f")
    left.touch(0o600)
    with as_user(USER):
        remove_left_overs(shared)
        record_file.replace(shared / "f", b"mine\n", mode=0o600)
    assert left.exists()
    assert (shared / "f").stat().st_uid == USER


def test_without_root_actions_recorded_by_root_can_be_marked_as_not_done(shared: Path) -> None:
    path = shared / "journal"
    record = Journal(path)
    record.begin("setup", [Entry("a", "Write /etc/hostname")])
    record.note(0, "done")
    # As if the group existed.
    os.chown(path, 0, USER)
    with as_user(USER):
        forget(path, {"a"})
        last = read_attempt(path)
    assert last is not None
    assert [one.state for one in last.entries] == ["waiting"]
    assert path.stat().st_uid == 0


def test_a_token_created_by_root_is_spent_by_the_wizards_user(shared: Path) -> None:
    file = TokenFile(shared / "wizard.token")
    with changing(file.path):
        write_atomic(file.path, b"secret", mode=0o600, owner=Owner("root", "root"))
    os.chown(file.path, USER, USER)
    with as_user(USER):
        assert file.spend(lambda token: token == "secret")
    assert not file.path.exists()


@pytest.fixture
def device(shared: Path) -> Paths:
    """A device with the folders of a real machine, and left-overs of a killed attempt by root."""
    root = shared / "device"
    modes = {"etc/platform/tunnel": 0o700, "var/lib/platform": 0o1770, "run/platform": 0o1770}
    for name, mode in modes.items():
        (root / name).mkdir(parents=True)
        os.chown(root / name, 0, USER)
        (root / name).chmod(mode)
    for name in ("run/platform/mesh-vpn.key", "etc/platform/.rclone.conf.1.00000000.tmp"):
        (root / name).write_text("secret")
    return Paths(root, {})


def test_leak_06_a_wizard_of_another_user_starts_despite_left_overs_of_root(device: Paths) -> None:
    execute([], device, lambda command: None, setup="x")
    key = device.on_device("/run/platform/mesh-vpn.key")
    key.write_text("secret")
    with as_user(USER):
        own = device.on_device("/run/platform/.mesh-vpn.key.1.00000000.tmp")
        own.touch()
        tidy(device)
        # It removed its own left-over, although it cannot remove root's.
        assert not own.exists()
    assert key.exists()
    execute([], device, lambda command: None, setup="x")
    assert not key.exists()


def test_wiz_12_root_and_a_wizard_without_root_share_one_lock(
    device: Paths,
) -> None:
    path = device.on_device("/var/lib/platform/apply")
    with as_user(USER), changing(path):
        pass
    with changing(path), as_user(USER), pytest.raises(LockedError), changing(path, wait_s=0):
        pass
