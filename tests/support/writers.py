"""A program that changes one file, as the programs of the device do, in one of several ways.

`python -m tests.support.writers WAY PATH [TEXT]`.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from platform_common.appending import append_line, put_aside
from platform_common.command_line import tell
from platform_common.errors import PlatformError
from platform_common.files import Owner
from platform_common.records import record_file

MODE = 0o640
# Everywhere on Debian, and not the group that a new file has by itself.
OWNER = Owner("root", "daemon")
GROUP_ID = 1


def _edit(path: Path, text: str) -> None:
    record_file.edit(path, lambda _: text.encode(), mode=MODE, owner=OWNER)


def _append(path: Path, text: str) -> None:
    append_line(path, text.encode(), mode=MODE, owner=OWNER)


def _put_aside(path: Path, text: str) -> None:
    if not put_aside(path, path.with_name(text)):
        raise PlatformError("there is nothing to put aside")


WAYS: Mapping[str, Callable[[Path, str], None]] = {
    "edit": _edit,
    "append": _append,
    "put-aside": _put_aside,
}


def main() -> int:
    """Do what the command line says; the exit code."""
    os.umask(0)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    way, path, text = sys.argv[1:]
    try:
        WAYS[way](Path(path), text)
    except PlatformError as error:
        tell(error)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def state(folder: Path) -> dict[str, bytes]:
    """The files in `folder` by name, but for the lock files; each must have its mode and owner."""
    found = {}
    for path in sorted(folder.iterdir()):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        hidden = path.name.startswith(".") and mode == 0o600
        assert hidden or mode == MODE, f"{path.name} has the mode {mode:o}"
        assert hidden or os.geteuid() or status.st_gid == GROUP_ID, (
            f"{path.name} is of group {status.st_gid}"
        )
        if not path.name.endswith(".lock"):
            found[path.name] = path.read_bytes()
    return found


if __name__ == "__main__":
    sys.exit(main())
