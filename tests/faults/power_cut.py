"""A machine whose power is cut many times during one run.

After a power cut, a disk contains what the machine has handed to it by then. So the machine is
stopped, the file that is its disk is copied, and the machine continues: each copy is a cut. Killing
a program does not reveal a missing fsync, because the kernel keeps the written data; this does.

QEMU emulates the machine, so it needs neither KVM nor a particular processor. Its kernel is
Debian's; everything else is in its memory: the files that `power_cut_guest` opens, as strace
reports them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import re
import shutil
import socket
import stat
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from dev.distributions import ROOT
from tests.faults.power_cut_guest import DATA
from tests.support import environments
from tests.support.running import printed, run

_TIMEOUT_S = 300
_DISK_BYTES, _NOTES_BYTES = 24 << 20, 1 << 20
_LONGEST_S = 0.5
_POLL_S = 0.001
# Each driver needs those before it.
_DRIVERS = (
    "virtio/virtio_ring.ko",
    "virtio/virtio.ko",
    "virtio/virtio_pci_legacy_dev.ko",
    "virtio/virtio_pci_modern_dev.ko",
    "virtio/virtio_pci.ko",
    "block/virtio_blk.ko",
)
# The kernel opens the loader to start a program.
_LOADER = Path("/lib64/ld-linux-x86-64.so.2")
_OPENED = re.compile(r'^[0-9]+ +\w+\((?:AT_FDCWD[^,]*, )?"(/[^"]+)".* = [0-9]', re.MULTILINE)
_OF_THE_KERNEL = ("/proc/", "/sys/", "/dev/")
_SCRIPT = """import runpy, site, sys
site.addsitedir({site!r})
sys.path.insert(0, {root!r})
runpy.run_module("tests.faults.power_cut_guest", run_name="__main__", alter_sys=True)
"""
# A busy host delays the guest's timer, which the guest would take for a broken one.
_KERNEL_OPTIONS = "console=ttyS0 quiet no_timer_check panic=-1"


class Cut(NamedTuple):
    """What was acknowledged before the power cut, line by line, and the disk at that moment."""

    said: list[str]
    disk: Path

    def files(self, folder: Path) -> Path:
        """Extract the files of the disk into the new `folder`, as mounting it would show them."""
        folder.mkdir()
        # Replays the journal, as mounting would.
        assert run("e2fsck", "-fp", self.disk).returncode in (0, 1)
        printed("debugfs", "-R", f"rdump {DATA} {folder}", self.disk)
        self.disk.unlink()
        return folder / DATA


class CutMachine:
    """A machine that writes until its power is cut."""

    def __init__(self, folder: Path, control: socket.socket) -> None:
        self._folder = folder
        self._control = control
        self._answers = control.makefile("rb")
        self._count = 0
        # The same moments in every run, as far as the speed of a machine allows.
        self._chance = random.Random(20261101)
        self._ask("qmp_capabilities")

    def cut(self, when: Callable[[str], bool] = lambda last: True, *, at_once: bool = False) -> Cut:
        """Cut the power some time after a line for which `when` holds, or `at_once` after it."""
        before = self._said() if at_once else []
        deadline = time.monotonic() + _TIMEOUT_S
        while not ((said := self._said()) != before and when(said[-1])):
            assert time.monotonic() < deadline, "\n".join([*self._console(), *said[-20:]])
            time.sleep(_POLL_S)
        if not at_once:
            time.sleep(self._chance.uniform(0, _LONGEST_S))
        self._count += 1
        disk = self._folder / f"disk-{self._count}"
        self._ask("stop")
        shutil.copyfile(self._folder / "disk", disk)
        said = self._said()
        self._ask("cont")
        return Cut(said, disk)

    def close(self) -> None:
        """Close the control connection."""
        self._answers.close()

    def _said(self) -> list[str]:
        notes = (self._folder / "notes").read_bytes()
        # Without an incomplete line, and without the unwritten part.
        return notes[: notes.rfind(b"\n") + 1].decode().splitlines()

    def _console(self) -> list[str]:
        return (self._folder / "console").read_text("utf-8", "replace").splitlines()[-50:]

    def _ask(self, command: str) -> None:
        self._control.sendall(json.dumps({"execute": command}).encode())
        while "return" not in (answer := json.loads(self._answers.readline())):
            assert "error" not in answer, answer


@contextlib.contextmanager
def cut_machine(folder: Path, what: str, unsynced: str = "nothing") -> Iterator[CutMachine]:
    """Boot a machine that runs `what` and skips every fsync of the `unsynced` kind of file."""
    folder.mkdir()
    for name, size in (("disk", _DISK_BYTES), ("notes", _NOTES_BYTES)):
        with (folder / name).open("wb") as file:
            file.truncate(size)
    printed("mkfs.ext4", "-q", folder / "disk")
    drivers = " ".join(f"/drivers/{driver}" for driver in _DRIVERS)
    # A socket's path is limited in length, so this pair has none.
    ours, its = socket.socketpair()
    with ours, its, (folder / "console").open("wb") as console:
        machine = subprocess.Popen(
            [
                *("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "768"),
                *("-nographic", "-nodefaults", "-serial", "stdio", "-no-reboot"),
                *("-chardev", f"socket,id=control,fd={its.fileno()}"),
                *("-mon", "chardev=control,mode=control"),
                *("-kernel", next((environments.kernel() / "boot").glob("vmlinuz-*"))),
                *("-initrd", _boot_files(folder), "-append"),
                f"{_KERNEL_OPTIONS} rdinit=/python -- -S -P /guest.py {what} {unsynced} {drivers}",
                *("-drive", "file=disk,format=raw,if=virtio"),
                *("-drive", "file=notes,format=raw,if=virtio"),
            ],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            env={"PATH": os.environ["PATH"]},
            pass_fds=[its.fileno()],
        )
        try:
            ours.settimeout(_TIMEOUT_S)
            with contextlib.closing(CutMachine(folder, ours)) as cuts:
                yield cuts
        finally:
            machine.kill()
            machine.wait(_TIMEOUT_S)


def _boot_files(folder: Path) -> Path:
    """Build the machine's files in memory: one archive that a kernel unpacks at its start."""
    script, log, target = (folder / name for name in ("guest.py", "opened", "boot-files"))
    script.write_text(_SCRIPT.format(site=sysconfig.get_path("purelib"), root=str(ROOT)))
    # Not the link in a virtual environment, where Python would look for its own files.
    python = Path(sys.executable).resolve()
    printed("strace", "-f", "-qq", "-e", "trace=%file", "-o", log, python, "-S", "-P", script)
    files = {
        path: path
        for path in map(Path, _OPENED.findall(log.read_text()))
        if path.is_file() and not str(path).startswith(_OF_THE_KERNEL)
    }
    for path in list(files):
        if path.suffix == ".py" and (made := Path(importlib.util.cache_from_source(path))).exists():
            files[made] = made
    (modules,) = environments.kernel().glob("lib/modules/*/kernel/drivers")
    files |= {Path("/drivers", driver): modules / driver for driver in _DRIVERS}
    files |= {Path("/python"): python, _LOADER: _LOADER, Path("/guest.py"): script}
    with target.open("wb") as archive:
        _pack(files.items(), archive)
    return target


def _pack(files: Iterable[tuple[Path, Path]], archive: IO[bytes]) -> None:
    """Write the format that a kernel unpacks, cpio's "newc": each file after its folders."""
    folders = {Path("/")}

    def add(name: str, mode: int, data: bytes = b"", mtime: int = 0) -> None:
        fields = [0, mode, 0, 0, 1, mtime, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        for part in (head, data):
            archive.write(part + bytes(-len(part) % 4))

    for name, path in files:
        for folder in reversed(name.parents):
            if folder not in folders:
                folders.add(folder)
                add(str(folder)[1:], stat.S_IFDIR | 0o755)
        status = path.stat()
        add(str(name)[1:], status.st_mode, path.read_bytes(), int(status.st_mtime))
    add("TRAILER!!!", 0)
