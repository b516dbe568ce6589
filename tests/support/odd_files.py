"""Things that may be in the place of a regular file."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

NOT_REGULAR = ("FIFO", "folder", "socket", "device")
LINKS = ("symbolic link", "dangling link", "link to itself", "hard link")


def make(kind: str, path: Path) -> Path:
    """Something of that kind at `path`."""
    precious = path.with_name("precious")
    match kind:
        case "symbolic link":
            precious.write_bytes(b"precious\n")
            path.symlink_to(precious)
        case "dangling link":
            path.symlink_to("nowhere")
        case "link to itself":
            path.symlink_to(path.name)
        case "hard link":
            precious.write_bytes(b"precious\n")
            path.hardlink_to(precious)
        case "folder":
            path.mkdir()
        case "socket":
            # One that is bound has a short path, and this one need not be listened to.
            os.mknod(path, stat.S_IFSOCK | 0o666)
        case "device":
            _make_device(path)
        case "FIFO":
            os.mkfifo(path)
        case _:
            raise ValueError(kind)
    return path


def _make_device(path: Path) -> None:
    # Any user may make device 0:0, and no driver has it, so it is never opened. Where a file
    # system is mounted without devices, the kernel refuses to open it for that reason.
    with contextlib.suppress(PermissionError):
        return os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(0, 0))
    # Only an overlay file system takes none. Root makes /dev/null there; another user can make
    # no device at all, and `test_reading.py` shows any user those that the machine has.
    if os.geteuid() == 0:
        return os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    return os.mkfifo(path)


def picture(folder: Path) -> dict[str, tuple[object, ...]]:
    """What is in `folder`, so that any change of it shows."""
    seen: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.iterdir()):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        seen[path.name] = (status.st_ino, status.st_mode, status.st_nlink, status.st_mtime_ns, data)
    return seen
