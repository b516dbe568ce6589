"""Things that may exist in place of a regular file."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

NOT_REGULAR = ("FIFO", "folder", "socket", "device")
LINKS = ("symbolic link", "dangling link", "link to itself", "hard link")


def make(kind: str, path: Path) -> Path:
    """Create something of that kind at `path`."""
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
            # The length of a socket's path is limited, and nothing needs to listen on this one.
            os.mknod(path, stat.S_IFSOCK | 0o666)
        case "device":
            _make_device(path)
        case "FIFO":
            os.mkfifo(path)
        case _:
            raise ValueError(kind)
    return path


def _make_device(path: Path) -> None:
    # Any user can create device 0:0, which has no driver and so cannot be opened. If a file system
    # is mounted without devices, the kernel refuses to open it for that reason.
    with contextlib.suppress(PermissionError):
        return os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(0, 0))
    # Only overlay file systems refuse it. Then root creates /dev/null there. Other users cannot
    # create any device; `test_safe_read.py` checks those of the machine for them.
    if os.geteuid() == 0:
        return os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    return os.mkfifo(path)


def picture(folder: Path) -> dict[str, tuple[object, ...]]:
    """The content of `folder`, for detecting any change."""
    seen: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.iterdir()):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        seen[path.name] = (status.st_ino, status.st_mode, status.st_nlink, status.st_mtime_ns, data)
    return seen
