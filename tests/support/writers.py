"""How the writers that meet faults write: the mode and owner of their files, and reading them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from platform_common.storage.atomic_write import Owner

MODE = 0o640
# A group that exists everywhere on Debian, and is not that of new files.
OWNER = Owner("root", "daemon")
GROUP_ID = 1


def state(folder: Path, *, user: int | None = None) -> dict[str, bytes]:
    """The files in `folder` by name, without lock files; checks their mode and owner.

    The files of a `user` other than root have that user's group, because only root can choose
    another one.
    """
    found = {}
    may_choose = os.geteuid() == 0 and user is None
    for path in sorted(folder.iterdir()):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        hidden = path.name.startswith(".") and mode == 0o600
        assert hidden or mode == MODE, f"{path.name} has the mode {mode:o}"
        group = GROUP_ID if may_choose else status.st_gid if user is None else user
        assert hidden or status.st_gid == group, f"{path.name} is of group {status.st_gid}"
        if not path.name.endswith(".lock"):
            found[path.name] = path.read_bytes()
    return found
