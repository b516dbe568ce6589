"""A machine whose power is cut a hundred times while it runs once.

What a kill of the machine would leave on its disk is what is in the disk's file at that
moment: so it is stopped, the file is copied, and it goes on. See `power_cut` for the rest.

`python -m tests.support.apply_power_cut FOLDER WHAT UNSYNCED` is what runs inside.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from platform_common.files import Owner, make_folder
from tests.support.apply_setups import FULL, KEY, STATE, answer, started
from tests.support.power_cut import UNSYNCED
from wizard_app.answers import Answers
from wizard_app.authorized_keys import add_keys
from wizard_app.chat_history import ChatHistory, turn
from wizard_app.journal import Entry, Journal
from wizard_app.state import WizardState
from wizard_app.state_file import StateFile
from wizard_app.steps import STEPS

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 120
_DISK_BYTES = 24 << 20
_AT_ONCE, _LONGEST_S = 6, 0.1


class Cut(NamedTuple):
    """What was said until the power went, and the disk as it was then."""

    said: list[str]
    disk: Path


def cuts(folder: Path, what: str, count: int, unsynced: str = "nothing") -> list[Cut]:
    """Run the machine, and have its disk as at `count` moments at random."""
    disk, device, mount = (folder / name for name in ("disk", "dev", "mount"))
    for path in (device, mount):
        path.mkdir(parents=True)
    with disk.open("wb") as file:
        file.truncate(_DISK_BYTES)
    _call("mkfs.ext4", "-q", disk)
    init = folder / "init"
    # Without its guess at what programs meant, ext4 shows what they forgot.
    init.write_text(
        "#!/bin/sh\n"
        "mount -t proc proc /proc &&\n"
        f"mount -t devtmpfs dev '{device}' &&\n"
        f"mount -t ext4 -o noauto_da_alloc '{device}/ubda' '{mount}' &&\n"
        f"cd '{_ROOT}' &&\n"
        f"exec '{sys.executable}' -m tests.support.apply_power_cut '{mount}' {what} {unsynced}\n"
    )
    init.chmod(0o755)
    with _running(folder, init) as machine:
        chance = random.Random(20261101)
        said: list[str] = []
        found: list[Cut] = []
        while len(found) < count:
            _read(machine, said, until=lambda line: line.startswith("begun"))
            # A few of one device, until it is set up.
            for _ in range(_AT_ONCE):
                time.sleep(chance.uniform(0, _LONGEST_S))
                with _stopped(machine):
                    _read(machine, said)
                    found.append(Cut(list(said), folder / f"disk-{len(found)}"))
                    shutil.copyfile(disk, found[-1].disk)
                if said[-1].startswith(("done", "answered")):
                    break
        return found[:count]


def disk_after(cut: Cut, folder: Path) -> Path:
    """The files on the disk when it is mounted again."""
    folder.mkdir()
    # Replays the journal, as mounting would.
    _call("e2fsck", "-fp", cut.disk, good=(0, 1))
    _call("debugfs", "-R", f"rdump data {folder}", cut.disk)
    return folder / "data"


def _call(*argv: str | Path, good: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode in good, done.stdout


@contextlib.contextmanager
def _running(folder: Path, init: Path) -> Iterator[subprocess.Popen[bytes]]:
    machine = subprocess.Popen(
        [
            *("linux.uml", "mem=256M", f"uml_dir={folder}/", f"ubd0={folder / 'disk'}"),
            *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"),
            *("con=null", "con0=null,fd:1", "quiet", "panic=-1"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)},
        start_new_session=True,
        bufsize=0,
    )
    _rest.clear()
    try:
        yield machine
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(machine.pid, signal.SIGKILL)
        machine.wait(_TIMEOUT_S)
        assert machine.stdout is not None
        machine.stdout.close()


# What the machine has said of a line that is not complete.
_rest = bytearray()


def _read(
    machine: subprocess.Popen[bytes],
    said: list[str],
    until: Callable[[str], bool] | None = None,
) -> None:
    """Take what the machine says: until a line is such a one, or what it has said by now."""
    assert machine.stdout is not None
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        wait_s = 0.0 if until is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([machine.stdout], [], [], wait_s)
        if not ready:
            assert until is None, "\n".join(said[-50:])
            return
        data = os.read(machine.stdout.fileno(), 1 << 16)
        assert data, "\n".join(said[-50:])
        _rest.extend(data)
        *lines, last = bytes(_rest).split(b"\n")
        _rest[:] = last
        new = [line.decode("utf-8", "replace").strip() for line in lines]
        said += new
        if until is not None and any(map(until, new)):
            return


@contextlib.contextmanager
def _stopped(machine: subprocess.Popen[bytes]) -> Iterator[None]:
    """No process of the machine runs: neither its kernel nor who writes for it."""
    processes = [machine.pid, *_helpers(machine.pid)]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    for process in processes:
        while _status(process, "State")[0] not in "TZ":
            time.sleep(0.0005)
    try:
        yield
    finally:
        for process in reversed(processes):
            os.kill(process, signal.SIGCONT)


def _helpers(process: int) -> list[int]:
    """Its children but for those that it traces, which are the programs inside."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [child for child in map(int, children) if _status(child, "TracerPid") == "0"]


def _status(process: int, name: str) -> str:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def _forget(unsynced: str) -> None:
    fsync = os.fsync

    def forgetful(fd: Any) -> None:
        if stat.S_IFMT(os.fstat(fd).st_mode) not in UNSYNCED[unsynced]:
            fsync(fd)

    os.fsync = forgetful


def _say(*words: object) -> None:
    # One write, so that no other thread is in between.
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def _set_up_for_ever(folder: Path) -> None:
    number = 0
    while True:
        number += 1
        client = started(folder / str(number))
        for slug in FULL:
            answer(client, FULL, [slug])
            _say("answered", number, slug)
        _say("begun", number)
        done = client.post("/wizard/review/apply")
        assert done.location == "/wizard/done", done.text
        _say("done", number)
        if number > 3:
            shutil.rmtree(folder / str(number - 3))


OWNER = Owner("root", "root")
Write = Callable[[int], None]


def writers(folder: Path) -> Mapping[str, Write]:
    """What each writer does to make its state that of a number, 1 more than the one before."""
    state_file = StateFile(folder / STATE, STEPS)
    journal = Journal(folder / "journal")
    make_folder(folder)
    history = ChatHistory(folder / "chat")

    def note(number: int) -> None:
        if number == 1:
            journal.begin("setup", [Entry(str(one), "x") for one in range(100_000, 100_003)])
        journal.note(number % 3, "failed", str(number))

    def save(number: int) -> None:
        named = Answers({"hostname": f"box-{number}"})
        state_file.save(WizardState("2026-11-01T12:00:00Z", "profile", answers=named))

    return {
        "journal": note,
        "keys": lambda number: add_keys(
            folder / "home/.ssh/keys", [f"{KEY}-{number}"], mode=0o600, owner=OWNER
        ),
        "chat": lambda number: history.append(turn("user", f"{number} {'x' * 300}")),
        "state": save,
    }


def _write_for_ever(folder: Path) -> None:
    def go_on(name: str, write: Write) -> None:
        number = 0
        while True:
            number += 1
            write(number)
            _say(name, number)
            if name == "state":
                _say("begun")

    for name, write in writers(folder).items():
        threading.Thread(target=go_on, args=(name, write)).start()


if __name__ == "__main__":
    _forget(sys.argv[3])
    make_folder(Path(sys.argv[1]) / "data")
    {"apply": _set_up_for_ever, "write": _write_for_ever}[sys.argv[2]](Path(sys.argv[1]) / "data")
