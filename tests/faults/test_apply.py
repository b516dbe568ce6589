"""Setting up with a fault at every system call: whole files, no secret lost, one press more."""

from __future__ import annotations

import json
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import html5lib
import pytest

from tests.support.apply_runs import BEGIN, END
from tests.support.apply_setups import (
    JOURNAL,
    SETUPS,
    alike,
    answer,
    commands,
    left_overs,
    lost,
    not_stored,
    prepare,
    press_once_more,
    put_back,
    result,
    started,
    wrong,
)
from tests.support.faults import FaultServer, Run

_CALL = re.compile(r"[0-9]+ +([a-z_0-9]+)\(")
# No fault, but a log of all calls.
_NONE = "kexec_load:error=EIO"
# The others change nothing, and what follows them is the same as what follows these.
_CALLS = {
    *("close", "write", "fsync", "ftruncate"),
    *("renameat", "renameat2", "unlink", "unlinkat", "linkat"),
    *("mkdir", "mkdirat", "fchmod", "fchown", "lchown"),
}
_PARTS = 2


class Device:
    """A device that is set up again and again, each time from the same state of it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.setup, self.name = SETUPS[name], name
        self.out, self.clean = folder / "device", folder / "clean"
        prepare(self.setup, self.out)
        shutil.copytree(self.out, self.clean)
        self.before = result(self.out)
        self.enter = sorted(not_stored(self.out, self.setup.forms))
        client = started(self.out)
        assert lost(client) == set(self.enter)
        answer(client, self.setup.forms, self.enter)
        assert client.post("/wizard/review/apply").status_code == 302
        self.after = result(self.out)
        self.run = commands(self.out)
        self.seen: list[Any] = []

    def assert_one_press_completes(self) -> None:
        """A wizard that starts now wants what was not stored, and ends as if nothing had been."""
        if (state := alike(self.out)) in self.seen:
            return
        self.seen.append(state)
        joined = "mesh-vpn" not in not_stored(self.out, self.setup.forms)
        ran = press_once_more(self.out, self.setup.forms)
        kept = [argv for argv in self.run if joined and argv[0] == "tailscale"]
        assert ran in (None, [argv for argv in self.run if argv not in kept])
        assert result(self.out) == self.after
        assert left_overs(self.out) == []


def _matters(call: str, line: str) -> bool:
    return call in _CALLS or (call == "openat" and "O_RDONLY" not in line)


class Runs:
    """Presses of the button in processes of their own, each with a fault."""

    def __init__(self, server: FaultServer, device: Device) -> None:
        self._server = server
        self.device = device
        self.first = device.out.with_name("first")

    def reset(self) -> None:
        """Put the device back to how it was before the button was pressed."""
        put_back(self.device.out, self.device.clean)
        shutil.rmtree(self.first, ignore_errors=True)

    def press(self, fault: str | None = None, presses: int = 1) -> Run:
        """Press the button."""
        also = "all" if fault == _NONE else ""
        return self._server.run(
            str(presses),
            cwd=Path("/"),
            env={},
            fault=fault,
            also_trace=also,
        )

    def points(self) -> list[tuple[str, str]]:
        """Every system call on the device while it is set up: `CALL:%s:when=COUNT`, and how."""
        self.reset()
        seen: Counter[str] = Counter()
        found, pressed = [], False
        for line in self.press(_NONE).calls:
            if BEGIN in line or END in line:
                pressed = BEGIN in line
            if match := _CALL.match(line):
                seen[match[1]] += 1
                if pressed and f"{self.device.out}" in line and _matters(match[1], line):
                    found.append((f"{match[1]}:%s:when={seen[match[1]]}", line))
        return found


@pytest.fixture(params=SETUPS)
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """For each of the setups."""
    # In memory, as what a disk forgets is for other tests.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = Path(name)
        device = Device(request.param, folder)
        preload = ["ctypes", "grp", "pwd", "glob"]
        prepared = [str(device.out), device.name]
        put_back(device.out, device.clean)
        with FaultServer(folder, "tests.support.apply_runs", preload, prepared) as server:
            yield Runs(server, device)


@pytest.mark.parametrize("part", range(_PARTS))
def test_wiz_09_and_leak_06_a_device_whose_wizard_is_killed_at_any_call_is_set_up_by_one_more_press(
    runs: Runs, part: int
) -> None:
    device = runs.device
    points = [point for point, _ in runs.points()]
    mine = points[part * len(points) // _PARTS : (part + 1) * len(points) // _PARTS]
    for point in mine:
        runs.reset()
        killed = runs.press(point % "signal=KILL")
        assert (killed.hit, killed.returncode) == (True, -signal.SIGKILL), point
        assert wrong(device.out, device.before, device.after) == [], point
        device.assert_one_press_completes()
    # In all setups together more than a thousand.
    assert len(points) > 320


def test_leak_05_every_new_file_is_for_its_owner_alone_until_it_is_whole(runs: Runs) -> None:
    runs.reset()
    made, pressed = [], False
    # With a umask that takes nothing away.
    for line in runs.press(_NONE).calls:
        if BEGIN in line or END in line:
            pressed = BEGIN in line
        if pressed and "O_CREAT" in line:
            made.append(line)
    assert len(made) > 10
    for line in made:
        assert f"{runs.device.out}/" in line
        assert "|O_EXCL" in line or '.lock"' in line
        assert ", 0600) = " in line


# Of each error, which calls answer it: somewhere in every action there is one of them.
_ERRORS = {
    "ENOSPC": ("write",),
    "EROFS": ("openat", "mkdir", "mkdirat"),
    "EACCES": ("renameat", "renameat2", "fchmod"),
    "EIO": ("fsync", "unlinkat"),
    "EDQUOT": ("renameat", "renameat2", "mkdir", "mkdirat"),
}


@pytest.mark.parametrize("error", _ERRORS)
@pytest.mark.parametrize("runs", ["new"], indirect=True)
def test_wiz_05_fs_03_and_fs_04_after_a_call_that_fails_the_next_press_needs_nothing_more(
    runs: Runs, error: str
) -> None:
    device, told = runs.device, set()
    points = [
        (point, JOURNAL in line)
        for point, line in runs.points()
        if point.partition(":")[0] in _ERRORS[error]
    ]
    # Most are on the journal, where one is like the other.
    of_journal = [point for point, in_journal in points if in_journal][::15]
    for point in [point for point, in_journal in points if not in_journal][::3] + of_journal:
        runs.reset()
        run = runs.press(point % f"error={error}", presses=2)
        assert run.hit, point
        assert (run.returncode, run.stderr) == (0, ""), point
        first, second = json.loads(run.stdout)
        if first["status"] == 302:
            assert result(runs.first) == device.after, point
        else:
            told.add(_assert_told(first, error))
            assert wrong(runs.first, device.before, device.after) == [], point
            ran = commands(runs.first)
            assert ran == device.run[: len(ran)], point
        assert second["to"] == "/wizard/done", point
        assert result(device.out) == device.after, point
        assert left_overs(device.out) == [], point
    assert len(told) > 3, told


_REASONS = {
    "ENOSPC": "No space left on device",
    "EROFS": "Read-only file system",
    "EACCES": "Permission denied",
    "EIO": "Input/output error",
    "EDQUOT": "Disk quota exceeded",
}


def _assert_told(answer: dict[str, Any], error: str) -> str:
    """The page says why, and what to do; returns which action did not work, if it was one."""
    assert answer["status"] == 200
    [box] = [
        element
        for element in html5lib.parse(answer["text"], namespaceHTMLElements=False).iter()
        if element.attrib.get("aria-labelledby") == "stopped"
    ]
    lines = [" ".join("".join(line.itertext()).split()) for line in box.iter("p")]
    [at] = [number for number, line in enumerate(lines) if _REASONS[error] in line]
    assert "[Errno" not in lines[at]
    # What could not be saved says so itself.
    assert lines[at + 1 :] or "then continue again" in lines[at], lines
    return "".join(lines[:at])
