"""The files of a device that setup may change, for comparing two devices."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_FOLDERS = ("etc", "home/agent", "var/lib/platform", "root")
# Files that differ between machines or boots, left-overs of killed parts of systemd, and links to
# files that do not survive a reboot.
_OWN = re.compile(
    r"etc/machine-id|etc/\.pwd\.lock|etc/\.#.*|(.*/)?\..*\.lock|var/lib/platform/wizard-tls/.*"
    r"|etc/issue\.d/platform-wizard\.issue"
)
# For these only the mode and the owner are compared, because they contain times.
_TIMES = {"var/lib/platform/apply-journal.jsonl", "etc/platform/setup-complete"}
_STATE = "var/lib/platform/wizard-state.json"


class Entry(NamedTuple):
    """The mode, owner and content of a file or folder."""

    mode: str
    owner: tuple[int, int]
    content: str


Files = Mapping[str, Entry]


def device_files(tree: Path) -> Files:
    """All of them by their path in `tree`, the files of a device that is not running."""
    return {name: _entry(path, name) for name, path in _walk(tree) if not _OWN.fullmatch(name)}


def _walk(tree: Path) -> Iterator[tuple[str, Path]]:
    for top in _FOLDERS:
        for folder, folders, files in os.walk(tree / top):
            for name in (".", *folders, *files):
                path = Path(folder, name)
                yield path.relative_to(tree).as_posix(), path


def _entry(path: Path, name: str) -> Entry:
    status = path.lstat()
    content = ""
    if stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(status.st_mode) and name == _STATE:
        content = json.dumps(_without_times(json.loads(path.read_text())))
    elif stat.S_ISREG(status.st_mode) and name not in _TIMES:
        content = path.read_text("utf-8", "surrogateescape")
    return Entry(stat.filemode(status.st_mode), (status.st_uid, status.st_gid), content)


def _without_times(state: dict[str, object]) -> dict[str, object]:
    return {name: bool(value) if name.endswith("_at") else value for name, value in state.items()}
