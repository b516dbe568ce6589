"""The program inside the machine of `power_cut`, which writes without end.

The root is in memory and contains only the files that this program opens, so there is neither a
shell nor `mount`. One disk receives the written files. The other one receives a line for each
acknowledged write, bypassing all caches.

`python -m tests.faults.power_cut_guest WHAT UNSYNCED MODULE…` runs as process 1. Without arguments
it does everything once, in a temporary folder.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from platform_common.records import record_file
from platform_common.storage.append_log import append_line, put_aside
from platform_common.storage.atomic_write import Owner, make_folder
from tests.support.apply_setups import FULL, KEY, STATE, answer, started
from wizard_app.chat.history import ChatHistory, turn
from wizard_app.setup.answers import Answers
from wizard_app.setup.apply.authorized_keys import add_keys
from wizard_app.setup.apply.journal import Entry, Journal
from wizard_app.setup.state import WizardState
from wizard_app.setup.state_file import StateFile
from wizard_app.setup.steps import STEPS

DATA = "data"
DATA_DISK, NOTES_DISK = "/dev/vda", "/dev/vdb"
OWNER = Owner("root", "root")
LINES_PER_FILE = 7
_FINIT_MODULE = 313
_LONGEST_PAUSE_S = 0.04
# The kinds of files that are not synced, which a test must detect.
_UNSYNCED: Mapping[str, tuple[int, ...]] = {
    "nothing": (),
    "files": (stat.S_IFREG,),
    "folders": (stat.S_IFDIR,),
}
Write = Callable[[int], None]
Say = Callable[..., None]


def record(number: int) -> bytes:
    """The record after `number` edits."""
    return b"%d\n" % number * 1500


def line(number: int) -> bytes:
    """The line with that number, as long as typical real lines."""
    return b"%d " % number + b"x" * 300


def writers(folder: Path) -> Mapping[str, Write]:
    """The function of each writer, which changes its file from state `number - 1` to `number`."""
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

    def append(number: int) -> None:
        append_line(folder / "lines", line(number), mode=0o640, owner=OWNER)
        if number % LINES_PER_FILE == 0:
            put_aside(folder / "lines", folder / f"lines.{number:06}")

    return {
        "journal": note,
        "keys": lambda number: add_keys(
            folder / "home/.ssh/keys", [f"{KEY}-{number}"], mode=0o600, owner=OWNER
        ),
        "chat": lambda number: history.append(turn("user", f"{number} {'x' * 300}")),
        "state": save,
        "record": lambda number: record_file.replace(
            folder / "record", record(number), mode=0o640, owner=OWNER
        ),
        "lines": append,
    }


def _write(folder: Path, say: Say) -> Iterator[None]:
    chance = random.Random(20261101)
    all_writers = writers(folder)
    for number in itertools.count(1):
        for name, write in all_writers.items():
            write(number)
            say(name, number)
            # Without a pause, the next writer's fsync would also sync a file that this one did not
            # sync.
            time.sleep(chance.uniform(0, _LONGEST_PAUSE_S))
        yield


def _set_up(folder: Path, say: Say) -> Iterator[None]:
    for number in itertools.count(1):
        client = started(folder / str(number))
        for slug in FULL:
            answer(client, FULL, [slug])
            say("answered", number, slug)
        say("begun", number)
        done = client.post("/wizard/review/apply")
        assert done.location == "/wizard/done", done.text
        say("done", number)
        if number > 3:
            shutil.rmtree(folder / str(number - 3))
        yield


_WHAT: Mapping[str, Callable[[Path, Say], Iterator[None]]] = {"write": _write, "set-up": _set_up}


def _forget(unsynced: str) -> None:
    fsync = os.fsync

    def forgetful(fd: Any) -> None:
        if stat.S_IFMT(os.fstat(fd).st_mode) not in _UNSYNCED[unsynced]:
            fsync(fd)

    os.fsync = forgetful


def _recorder_on(disk: str) -> Say:
    notes = os.open(disk, os.O_WRONLY | os.O_SYNC)

    def say(*words: object) -> None:
        # Returns once the line is in the file that is the disk, so notes are never late.
        os.write(notes, f"{' '.join(map(str, words))}\n".encode())

    return say


def _begin(modules: list[str]) -> Path:
    """Set up devices, drivers and disk on the bare kernel; return the folder of the disk."""
    libc = ctypes.CDLL(None, use_errno=True)

    def checked(result: int, what: str) -> None:
        if result:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)

    def mount(source: str, target: str, kind: str, options: str = "") -> None:
        Path(target).mkdir(exist_ok=True)
        words = [text.encode() for text in (source, target, kind)]
        checked(libc.mount(*words, 0, options.encode()), target)

    mount("proc", "/proc", "proc")
    mount("sysfs", "/sys", "sysfs")
    mount("dev", "/dev", "devtmpfs")
    for module in modules:
        with open(module, "rb") as file:
            checked(libc.syscall(_FINIT_MODULE, file.fileno(), b"", 0), module)
    while not (Path(DATA_DISK).exists() and Path(NOTES_DISK).exists()):
        time.sleep(0.01)
    # Without this heuristic, ext4 reveals missing syncs.
    mount(DATA_DISK, "/disk", "ext4", "noauto_da_alloc")
    Path("/tmp").mkdir(exist_ok=True)
    return Path("/disk")


def main(what: str, unsynced: str, *modules: str) -> None:
    """Write until the power is cut."""
    folder = _begin(list(modules)) / DATA
    make_folder(folder)
    _forget(unsynced)
    for _ in _WHAT[what](folder, _recorder_on(NOTES_DISK)):
        pass


def once() -> None:
    """Do everything once, so that a tracer sees which files are needed."""
    ctypes.CDLL(None)
    with tempfile.TemporaryDirectory() as folder:
        for what, work in _WHAT.items():
            next(work(Path(folder, what), print))


if __name__ == "__main__":
    main(*sys.argv[1:]) if sys.argv[1:] else once()
