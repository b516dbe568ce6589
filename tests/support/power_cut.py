"""A machine whose power is cut while it writes: Linux as a program, killed.

The kernel is Debian's user-mode-linux, its root this machine's own files, read-only,
and its disk a file in which only what it has flushed arrives. Killing a writer shows
no missing fsync; this does.

`python -m tests.support.power_cut FOLDER DIVISION` is what runs inside.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from platform_common.appending import append_line, put_aside
from platform_common.files import make_folder
from platform_common.records import record_file
from tests.support.writers import MODE, OWNER

_ROOT = Path(__file__).parents[2]
_TIMEOUT_S = 60
# For files of each kind that the guest does not wait for: what the test must notice.
UNSYNCED: Mapping[str, tuple[int, ...]] = {
    "nothing": (),
    "files": (stat.S_IFREG,),
    "folders": (stat.S_IFDIR,),
}
_PER_FILE = 7


class Cut(NamedTuple):
    """What was acknowledged before the power went, and the folder as found afterwards."""

    records: int
    lines: int
    folder: Path


def record(number: int) -> bytes:
    """The record after `number` edits."""
    return b"%d\n" % number * 1500


def line(number: int) -> bytes:
    """The line of that number, as long as many a real one."""
    return b"%d " % number + b"x" * 300


def cut(folder: Path, acknowledged: int, unsynced: str = "nothing") -> Cut:
    """Run the writers in a new machine until so much is acknowledged, and cut its power."""
    disk, device, mount, found = (folder / name for name in ("disk", "dev", "mount", "found"))
    for path in (device, mount, found):
        path.mkdir(parents=True)
    with disk.open("wb") as file:
        file.truncate(16 << 20)
    _call("mkfs.ext4", "-q", disk)
    init = folder / "init"
    # Without its guess at what programs meant, ext4 shows what they forgot.
    init.write_text(
        "#!/bin/sh\n"
        f"mount -t devtmpfs dev '{device}' &&\n"
        f"mount -t ext4 -o noauto_da_alloc '{device}/ubda' '{mount}' &&\n"
        f"cd '{_ROOT}' &&\n"
        f"exec '{sys.executable}' -m tests.support.power_cut '{mount}' {unsynced}\n"
    )
    init.chmod(0o755)
    records, lines = _run_until(folder, init, acknowledged)
    # Replays the journal, as mounting would.
    _call("e2fsck", "-fp", disk, good=(0, 1))
    _call("debugfs", "-R", f"rdump data {found}", disk)
    return Cut(records, lines, found / "data")


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


def _run_until(folder: Path, init: Path, acknowledged: int) -> tuple[int, int]:
    machine = subprocess.Popen(
        [
            *("linux.uml", "mem=64M", f"uml_dir={folder}/", f"ubd0={folder / 'disk'}"),
            *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"),
            *("con=null", "con0=null,fd:1", "quiet", "panic=-1"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder)},
        start_new_session=True,
    )

    def pull_the_plug() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(machine.pid, signal.SIGKILL)

    watchdog = threading.Timer(_TIMEOUT_S, pull_the_plug)
    watchdog.start()
    said = []
    assert machine.stdout is not None
    with machine.stdout:
        for text in machine.stdout:
            said.append(text.strip())
            if said[-1] == b"record %d" % acknowledged:
                pull_the_plug()
    machine.wait(_TIMEOUT_S)
    watchdog.cancel()
    assert b"record %d" % acknowledged in said, b"\n".join(said).decode("utf-8", "replace")
    return _last(said, b"record "), _last(said, b"line ")


def _last(said: list[bytes], word: bytes) -> int:
    # The last text may have been cut, too, but not to another number that is smaller.
    return max((int(text[len(word) :]) for text in said if text.startswith(word)), default=0)


def _write_for_ever(folder: Path, unsynced: str) -> None:
    fsync = os.fsync

    def forgetful(fd: Any) -> None:
        if stat.S_IFMT(os.fstat(fd).st_mode) not in UNSYNCED[unsynced]:
            fsync(fd)

    os.fsync = forgetful
    make_folder(folder)
    number = 0
    while True:
        number += 1
        append_line(folder / "lines", line(number), mode=MODE, owner=OWNER)
        print(f"line {number}", flush=True)
        if number % _PER_FILE == 0:
            put_aside(folder / "lines", folder / f"lines.{number:06}")
        record_file.replace(folder / "record", record(number), mode=MODE, owner=OWNER)
        print(f"record {number}", flush=True)


if __name__ == "__main__":
    _write_for_ever(Path(sys.argv[1]) / "data", sys.argv[2])
