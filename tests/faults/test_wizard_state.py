"""The wizard's answers, with a fault at every system call that saves them, and with kills."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.devices import Device
from tests.support.faults import FaultServer, Run
from tests.support.web_servers import Served, served
from tests.support.wizard_posts import BEGIN, END, STATE, TIME_ZONE

_CALL = re.compile(r"[0-9]+ +([a-z_0-9]+)\(")
_NONE = "kexec_load:error=EIO"
_ERRORS = {
    "EIO": (),
    "ENOSPC": ("openat", "write", "fsync", "renameat"),
    "EROFS": ("openat", "renameat", "unlinkat", "fchmod", "fchown"),
    "EACCES": ("openat", "renameat", "fchmod"),
}
_SAVED_AGAIN = "second"


class Setup:
    """A wizard whose device was named `old`, to be named anew again and again."""

    def __init__(self, server: FaultServer, folder: Path) -> None:
        self._server = server
        self.folder = folder
        self.state = folder / STATE
        self._clean = folder.with_name("clean")
        assert self.run(None, "old").returncode == 0
        shutil.copytree(folder, self._clean)

    def reset(self) -> None:
        """Put the folder back to how it was."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._clean, self.folder)

    def run(self, fault: str | None, *names: str) -> Run:
        """Name the device, with a fault."""
        also = "all" if fault == _NONE else "fsync"
        return self._server.run(
            self.folder, *names, cwd=self.folder.parent, env={}, fault=fault, also_trace=also
        )

    def points(self) -> list[str]:
        """Every system call by which the first name is saved: `CALL:%s:when=COUNT`."""
        self.reset()
        seen: Counter[str] = Counter()
        found, saving = [], False
        for line in self.run(_NONE, "first").calls:
            if BEGIN in line or END in line:
                saving = BEGIN in line
            if match := _CALL.match(line):
                seen[match[1]] += 1
                if saving and f"{self.state.parent}" in line:
                    found.append(f"{match[1]}:%s:when={seen[match[1]]}")
        return found

    def left_overs(self) -> list[str]:
        """What a writer left unfinished."""
        return [path.name for path in self.state.parent.iterdir() if path.suffix == ".tmp"]


@pytest.fixture(scope="module")
def wizards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    """What starts them."""
    folder = tmp_path_factory.mktemp("wizards")
    preload = ["ctypes", "grp", "pwd", "wizard_app.app"]
    with FaultServer(folder, "tests.support.wizard_posts", preload) as server:
        yield server


@pytest.fixture
def setup(wizards: FaultServer, tmp_path: Path) -> Setup:
    """A wizard whose device has a name."""
    return Setup(wizards, tmp_path / "out")


def _answers(run: Run) -> list[dict[str, Any]]:
    assert (run.returncode, run.stderr) == (0, "")
    answers: list[dict[str, Any]] = json.loads(run.stdout)
    return answers


@pytest.mark.parametrize("error", _ERRORS)
def test_wiz_03_and_fs_03_an_answer_that_cannot_be_saved_changes_nothing(
    setup: Setup, error: str
) -> None:
    told = 0
    for point in setup.points():
        # strace lets a close that fails not happen at all; a kernel closes all the same.
        if point.startswith("close:"):
            continue
        if _ERRORS[error] and point.partition(":")[0] not in _ERRORS[error]:
            continue
        setup.reset()
        run = setup.run(point % f"error={error}", "first", _SAVED_AGAIN)
        assert run.hit
        first, second = _answers(run)
        if first["status"] == 302:
            assert first["stored"] == first["held"] == "first", point
        else:
            told += 1
            _assert_told(first)
        # The next one is saved as if nothing had been.
        assert second["status"] == 302, point
        assert second["stored"] == second["held"] == _SAVED_AGAIN
        assert setup.left_overs() == []
    assert told


def _assert_told(answer: dict[str, Any]) -> None:
    assert answer["status"] == 500
    assert "This could not be saved: " in answer["text"]
    assert "Check that the disk has room" in answer["text"]
    assert "Traceback" not in answer["text"]
    assert "[Errno" not in answer["text"]
    # What was typed is there to be sent once more.
    assert 'value="first"' in answer["text"]
    assert f'value="{TIME_ZONE}"' in answer["text"]
    assert answer["held"] == "old"
    # When the last call fails, it may be on the disk or not, and the page says so.
    unsure = "may or may not outlast a power cut" in answer["text"]
    assert answer["stored"] == ("first" if unsure else "old")


def test_wiz_04_and_leak_06_a_wizard_killed_at_any_call_has_the_old_answer_or_the_new_one(
    setup: Setup,
) -> None:
    stored = []
    for point in setup.points():
        setup.reset()
        killed = setup.run(point % "signal=KILL", "first")
        assert (killed.hit, killed.returncode) == (True, -signal.SIGKILL)
        stored.append(json.loads(setup.state.read_bytes())["answers"]["hostname"])
        assert setup.state.stat().st_mode & 0o777 == 0o600
        assert _answers(setup.run(None)) == []
        assert setup.left_overs() == []
        assert not list(setup.state.parent.glob("*.bad-*"))
    # First the one, then the other, and never back.
    assert stored == sorted(stored, reverse=True)
    assert set(stored) == {"old", "first"}


@pytest.fixture
def environment(device: Device, tmp_path: Path) -> dict[str, str]:
    """Of a wizard on its own, which is served."""
    return {
        "PLATFORM_ROOT": str(device.root),
        "WIZARD_DEV_OUT": str(tmp_path / "out"),
        "WIZARD_NO_TOKEN": "1",
    }


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)


def _name(wizard: Served, name: str) -> tuple[int, str]:
    """Status and page of naming the device; raises `OSError` when there is no answer."""
    form = urllib.parse.urlencode({"hostname": name, "timezone": TIME_ZONE}).encode()
    return _asked(f"{wizard.url}/wizard/system", form)


def _asked(url: str, form: bytes | None = None) -> tuple[int, str]:
    try:
        with _OPENER.open(url, form, timeout=30) as answer:
            return int(answer.status), str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_wiz_04_a_served_wizard_killed_at_random_moments_loses_nothing_it_acknowledged(
    environment: dict[str, str], tmp_path: Path
) -> None:
    chance = random.Random(20261101)
    acknowledged = 0
    for _ in range(6):
        with served("wizard-app", environment, tmp_path / "log") as wizard:
            if acknowledged:
                shown = re.search(r'value="name-(\d+)"', _asked(f"{wizard.url}/wizard/system")[1])
                # The last one may have been saved, and its answer lost on the way.
                assert shown is not None
                assert int(shown[1]) in (acknowledged, acknowledged + 1)
                acknowledged = int(shown[1])
            wait_s = chance.uniform(0.05, 0.6)
            killer = threading.Timer(wait_s, os.killpg, (wizard.process.pid, signal.SIGKILL))
            killer.start()
            try:
                while _name(wizard, f"name-{acknowledged + 1}")[0] == 302:
                    acknowledged += 1
            # The answer that was on its way may have ended anywhere.
            except (OSError, http.client.HTTPException):
                pass
            killer.join()
            wizard.process.wait(20)
    assert acknowledged > 6


def _files_of(wizard: Served, folder: str) -> Path:
    """A folder as the wizard sees it, which has mounts of its own."""
    return Path(f"/proc/{wizard.process.pid}/root{folder}")


@contextlib.contextmanager
def _on_small_disk(environment: Mapping[str, str], log: Path) -> Iterator[Served]:
    """A wizard whose folder is a file system of its own, of 256 KiB, that it alone sees."""
    out = Path(environment["WIZARD_DEV_OUT"])
    out.mkdir()
    mount = f"mount -t tmpfs -o size=256k,mode=755 tmpfs '{out}'"
    shell = ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    with served("wizard-app", environment, log, before=shell) as wizard:
        yield wizard


def _remount(wizard: Served, folder: str, how: str) -> None:
    inside = ["nsenter", "-t", str(wizard.process.pid), "-U", "-m", "--preserve-credentials"]
    subprocess.run([*inside, "mount", "-o", f"remount,{how}", folder], check=True, timeout=20)


def test_fs_01_a_served_wizard_goes_on_when_there_is_room_again(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with _on_small_disk(environment, tmp_path / "log") as wizard:
        folder = _files_of(wizard, environment["WIZARD_DEV_OUT"])
        assert _name(wizard, "old")[0] == 302
        filler = folder / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        _assert_refused(wizard, "No space left on device")
        filler.unlink()
        assert _name(wizard, "new")[0] == 302
        assert json.loads((folder / STATE).read_bytes())["answers"]["hostname"] == "new"
        assert list((folder / STATE).parent.glob("*.tmp")) == []
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_fs_02_a_served_wizard_on_a_read_only_disk_shows_its_pages(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with _on_small_disk(environment, tmp_path / "log") as wizard:
        out = environment["WIZARD_DEV_OUT"]
        assert _name(wizard, "old")[0] == 302
        _remount(wizard, out, "ro")
        _assert_refused(wizard, "Read-only file system")
        _remount(wizard, out, "rw")
        assert _name(wizard, "new")[0] == 302


def _assert_refused(wizard: Served, why: str) -> None:
    status, page = _name(wizard, "new")
    assert status == 500
    assert why in page
    assert 'value="new"' in page
    assert 'value="old"' in _asked(f"{wizard.url}/wizard/system")[1]
    assert _asked(f"{wizard.url}/wizard/review")[0] == 200
    assert _asked(f"{wizard.url}/healthz") == (200, "ok")


def test_fs_02_a_wizard_that_starts_on_a_read_only_disk_shows_its_pages(
    setup: Setup, environment: dict[str, str], tmp_path: Path
) -> None:
    # What the launch link is for is beside it, in memory.
    var = f"{environment['WIZARD_DEV_OUT']}/var"
    mount = f"mount --bind '{var}' '{var}' && mount -o remount,bind,ro '{var}'"
    shell = ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    with served("wizard-app", environment, tmp_path / "log", before=shell) as wizard:
        _assert_refused(wizard, "Read-only file system")
