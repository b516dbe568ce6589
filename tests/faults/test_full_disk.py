"""Disks that are full or read-only."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.devices import Device
from tests.support.releases import (
    KeyPair,
    Tools,
    artefact_files,
    clean_environment,
    program,
    pseudo_random,
    write_artefacts,
)
from tests.support.running import printed, run
from tests.support.trees import tree
from tests.support.web_servers import Served, served
from tests.support.wizard_visits import visitor_of
from tests.support.writers import MODE, state

_ROOT = Path(__file__).parents[2]
_NEW = "2026.11.2"
_RELEASE = ("--version", "2026.11.1", "--channel", "stable")
_PAGE = 4096


@dataclass(frozen=True)
class Disk:
    """A folder that can be filled up."""

    folder: Path
    mounted: bool

    def fill(self, left_bytes: int) -> list[str]:
        """Fill the disk up to `left_bytes`; return a prefix for the commands that meet it."""
        if not self.mounted:
            return ["prlimit", f"--fsize={left_bytes}"]
        filler = _fill(self.folder)
        os.truncate(filler, filler.stat().st_size - left_bytes)
        return []

    def make_room(self) -> None:
        """Free the space again."""
        (self.folder / ".filler").unlink(missing_ok=True)


def _fill(folder: Path) -> Path:
    filler = folder / ".filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(_PAGE)):
            pass
    return filler


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A file system of 256 KiB, if this process can mount one.

    Otherwise a limit on the size of files replaces the full disk.
    """
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = not run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder).returncode
    try:
        yield Disk(folder, mounted)
    finally:
        if mounted:
            printed("umount", folder)


def _ended(
    *argv: str | Path, cwd: Path = _ROOT, key: Path | None = None
) -> subprocess.CompletedProcess[str]:
    variables = {"SIGNING_SECRET_KEY": str(key)} if key else {}
    return run(*argv, cwd=cwd, env=clean_environment() | variables)


def _assert_reported(
    ended: subprocess.CompletedProcess[str], status: int, begin: str, *reasons: str
) -> None:
    assert ended.returncode == status, ended.stderr
    assert ended.stderr.startswith(f"error: {begin}")
    assert ended.stderr.rstrip().endswith(reasons or ("No space left on device", "File too large"))
    assert ended.stderr.count("\n") == 1


def _release(tmp_path: Path, disk: Disk, key: Path | None) -> Path:
    """A small release on the small disk."""
    name = "platform-khoj-qemu-x86_64-2026.11.1-stable.qcow2"
    folder = write_artefacts(tmp_path / "small", {name: b"image"})
    dist = disk.folder / "dist"
    built = _ended(program(), "build", folder, *_RELEASE, "--output", dist, cwd=tmp_path, key=key)
    assert built.returncode == 0, built.stderr
    return dist


def _copied(folder: Path) -> Path:
    for path in folder.iterdir():
        # A file that is not readable for everyone is copied and not linked.
        path.chmod(0o600)
    return folder


def test_pub_09_and_fs_01_a_full_disk_during_a_build_leaves_the_old_release(
    tmp_path: Path, disk: Disk, key_pair: KeyPair, tools: Tools
) -> None:
    dist = _release(tmp_path, disk, key_pair.secret)
    files = artefact_files(_NEW) | {
        f"platform-khoj-rpi4-{_NEW}-stable.img.xz": pseudo_random(1 << 20, "big")
    }
    folder = _copied(write_artefacts(tmp_path / "big", files))
    before = tree(dist)
    build = (program(), "build", folder, "--version", _NEW, "--channel", "stable")
    prefix = disk.fill(100_000)
    full = _ended(*prefix, *build, "--output", dist, cwd=tmp_path, key=key_pair.secret)
    _assert_reported(full, 5, "")
    assert tree(dist) == before
    verified = tools("verify", dist, "-p", key_pair.public)
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize(
    ("what", "left_bytes"),
    [("first release", 0), ("release", 0), ("file", 0), ("keys", 0), ("keys", 100)],
    ids=["first release", "signed release", "signed file", "neither key", "no second key"],
)
def test_fs_01_a_command_on_a_full_disk_changes_nothing(
    tmp_path: Path, disk: Disk, key_pair: KeyPair, what: str, left_bytes: int
) -> None:
    key: Path | None = key_pair.secret
    args: tuple[str | Path, ...]
    match what:
        case "first release":
            # Its folder does not exist either.
            folder, key = _copied(write_artefacts(tmp_path / "artefacts")), None
            args = ("build", folder, *_RELEASE, "--output", disk.folder / "a" / "b")
        case "release":
            args = ("sign", _release(tmp_path, disk, None) / "stable" / "manifest.json.unsigned")
        case "file":
            args = ("sign", disk.folder / "notes.txt")
            args[1].write_bytes(b"notes")
        case _:
            # The public key is smaller, so the limit only affects the secret key.
            pair = ("--secret-key", disk.folder / "k.key", "--public-key", disk.folder / "k.pub")
            args = ("keygen", *pair, "--no-password")
    prefix = disk.fill(left_bytes)
    before = tree(disk.folder)
    _assert_reported(_ended(*prefix, program(), *args, cwd=tmp_path, key=key), 5, "")
    assert tree(disk.folder) == before


def test_if_the_public_key_cannot_be_written_the_secret_key_is_removed(
    tmp_path: Path, disk: Disk
) -> None:
    secret = tmp_path / "k.key"
    paths = ("--secret-key", secret, "--public-key", disk.folder / "k.pub")
    full = _ended(*disk.fill(0), program(), "keygen", *paths, "--no-password", cwd=tmp_path)
    _assert_reported(full, 5, "")
    assert not secret.exists()


def test_an_output_that_cannot_be_written_is_reported_in_one_sentence() -> None:
    compare = f"exec '{program()}' compare 2026.11.1 2026.11.2 --json >/dev/full"
    ended = _ended("sh", "-c", compare)
    assert ended.returncode == 5
    assert ended.stderr == "error: reading or writing: No space left on device\n"


def _write(*args: str | Path, before: list[str]) -> subprocess.CompletedProcess[str]:
    return _ended(*before, sys.executable, "-m", "tests.faults.programs", *args)


@pytest.mark.parametrize("way", ["edit", "append"])
def test_fs_01_a_full_disk_keeps_the_old_file_and_writing_works_again_with_free_space(
    disk: Disk, way: str
) -> None:
    folder = disk.folder / "device"
    folder.mkdir()
    path = folder / "file"
    assert _write(way, path, "old", before=[]).returncode == 0
    old = state(folder)
    text = "n" * (3 * _PAGE)
    for left in (0, _PAGE, 2 * _PAGE):
        full = _write(way, path, text, before=disk.fill(left))
        reasons = (
            "No space left on device",
            "File too large",
            "only a part of the line could be written",
        )
        _assert_reported(full, 1, str(path), *reasons)
        assert state(folder) == old
    disk.make_room()
    assert _write(way, path, text, before=[]).returncode == 0
    new = text.encode() if way == "edit" else old["file"] + text.encode() + b"\n"
    assert state(folder) == {"file": new}


def test_chat_07_on_a_full_disk_a_turn_is_shown_with_a_notice(disk: Disk) -> None:
    path = disk.folder / "chat-history.jsonl"
    assert _write("say", path, "before", before=[]).returncode == 0
    before = path.read_bytes()
    text = "too much " * 2000
    for left in (0, _PAGE):
        sent = _write("send", path, text, before=disk.fill(left))
        assert (sent.returncode, sent.stderr) == (0, "")
        assert sent.stdout.startswith("200 ")
        assert "This could not be saved, so you lose it when you leave this page" in sent.stdout
        assert sent.stdout.count("<article") == 3
        assert text.strip() in sent.stdout
        assert path.read_bytes() == before
    disk.make_room()
    assert "could not be saved" not in _write("send", path, "after", before=[]).stdout
    said = [json.loads(line)["content"] for line in path.read_bytes().splitlines()]
    assert said[:2] == ["before", "after"]


def _with_mounts(mount: str) -> list[str]:
    """A command prefix that runs a program with its own mounts, which end with it."""
    return ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh"]


def _read_only(folder: Path) -> list[str]:
    return _with_mounts(
        f"mount --bind '{folder}' '{folder}' && mount -o remount,bind,ro '{folder}'"
    )


@pytest.mark.parametrize("way", ["edit", "append", "put-aside"])
@pytest.mark.parametrize("there", [True, False], ids=["existing", "missing"])
def test_fs_02_a_read_only_disk_is_reported_and_nothing_changes(
    tmp_path: Path, way: str, *, there: bool
) -> None:
    path = tmp_path / "file"
    if there:
        assert _write("append", path, "old", before=[]).returncode == 0
    old = state(tmp_path)
    refused = _write(way, path, "new", before=_read_only(tmp_path))
    if way == "put-aside" and not there:
        assert refused.stderr == "error: there is nothing to put aside\n"
    else:
        _assert_reported(refused, 1, str(path), "Read-only file system")
    assert state(tmp_path) == old
    if there:
        assert path.stat().st_mode & 0o777 == MODE


class Wizard:
    """A served wizard, in which the device is named."""

    def __init__(self, app: Served, out: Path) -> None:
        self._visitor = visitor_of(app)
        self._process, self._out = app.process.pid, out
        # The folder as the wizard sees it, with its own mounts.
        self.folder = Path(f"/proc/{self._process}/root{out}")

    def assert_accepted(self, name: str) -> None:
        """Check that a new name is accepted."""
        assert self._named(name)[0] == 302
        saved = (self.folder / "var/lib/platform/wizard-state.json").read_bytes()
        assert json.loads(saved)["answers"]["hostname"] == name
        assert list((self.folder / "var/lib/platform").glob("*.tmp")) == []

    def assert_refused(self, why: str) -> None:
        """Check that a new name is refused, and that every page still works."""
        status, page = self._named("new")
        assert status == 500
        assert why in page
        assert 'value="new"' in page
        assert 'value="old"' in self._visitor.ask("/wizard/system").body
        assert self._visitor.ask("/wizard/review").status == 200
        assert self._visitor.ask("/healthz")[::2] == (200, "ok")

    def _named(self, name: str) -> tuple[int, str]:
        form = [("hostname", name), ("timezone", "Europe/Berlin")]
        answer = self._visitor.ask("/wizard/system", form)
        return answer.status, answer.body

    def remount(self, how: str) -> None:
        """Make its folder read-only or writable."""
        inside = ("nsenter", "-t", str(self._process), "-U", "-m", "--preserve-credentials")
        printed(*inside, "mount", "-o", f"remount,{how}", self._out)


@contextlib.contextmanager
def _wizard(device: Device, log: Path, out: Path, before: list[str]) -> Iterator[Wizard]:
    environment = {
        "PLATFORM_ROOT": str(device.root),
        "WIZARD_DEV_OUT": str(out),
        "WIZARD_NO_TOKEN": "1",
    }
    with served("wizard-app", environment, log, before=before) as app:
        yield Wizard(app, out)
    assert "Traceback" not in log.read_text()


@pytest.mark.long
def test_fs_01_and_02_a_wizard_continues_once_its_disk_is_writable_again(
    device: Device, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    small = _with_mounts(f"mount -t tmpfs -o size=256k,mode=755 tmpfs '{out}'")
    with _wizard(device, tmp_path / "log", out, small) as wizard:
        wizard.assert_accepted("old")
        filler = _fill(wizard.folder)
        wizard.assert_refused("No space left on device")
        filler.unlink()
        wizard.remount("ro")
        wizard.assert_refused("Read-only file system")
        wizard.remount("rw")
        wizard.assert_accepted("new")


def test_fs_02_a_wizard_that_starts_on_a_read_only_disk_shows_its_pages(
    device: Device, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert _write("name", out, "old", before=[]).returncode == 0
    # The files for the launch link are elsewhere, in memory.
    with _wizard(device, tmp_path / "log", out, _read_only(out / "var")) as wizard:
        wizard.assert_refused("Read-only file system")
