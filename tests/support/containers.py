"""What a container is made of: the files of a Debian machine, groups of its own, its command.

The files are made once by mmdebstrap (half a minute) and kept in the user's cache.
Needs root.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.running import printed

_SUITE = "bookworm"
_PACKAGES = ("systemd-sysv", "dbus", "nftables", "openssh-server", "python3")
_UNWANTED = ("doc", "info", "locale", "man")
_NUMBERS = itertools.count()
# Where systemd's own tree of control groups is, on older hosts and on newer ones.
_CONTROL_GROUPS = [
    processes.parent
    for processes in map(
        Path,
        (
            "/sys/fs/cgroup/unified/cgroup.procs",
            "/sys/fs/cgroup/systemd/cgroup.procs",
            "/sys/fs/cgroup/cgroup.procs",
        ),
    )
    if processes.exists()
]
_JOIN = 'for group in $GROUPS; do echo $$ >"$group/cgroup.procs"; done; exec "$@"'


@contextlib.contextmanager
def control_groups() -> Iterator[tuple[str, list[Path]]]:
    """The name of a new machine, and the groups that its processes are to be in."""
    name = f"platform-test-{os.getpid()}-{next(_NUMBERS)}"
    groups = [group / name for group in _CONTROL_GROUPS]
    for group in groups:
        group.mkdir()
    try:
        yield name, groups
    finally:
        for group in groups:
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()


def nspawn(name: str, more: Sequence[str]) -> list[str]:
    """The command that makes a container of that name."""
    return [
        *("/bin/sh", "-c", _JOIN, "sh"),
        *("systemd-nspawn", "--quiet", "--register=no", "--keep-unit"),
        *("--link-journal=no", "--console=read-only", "--resolv-conf=off", "--timezone=off"),
        *("-M", name, *more),
    ]


def environment(groups: Sequence[Path]) -> dict[str, str]:
    """The environment of that command, whose processes are to be in those groups."""
    return os.environ | {"GROUPS": " ".join(map(str, groups))}


def base_tree() -> Path:
    """The files of every machine, made when they are not there."""
    recipe = repr((_SUITE, _PACKAGES, _UNWANTED))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "platform-appliance"
    tree = cache / f"machine-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    # Several test runs may want it at once; the first makes it and the others wait.
    with (cache / "machine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tree.exists():
            partial = tree.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            excluded = (f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in _UNWANTED)
            printed(
                *("mmdebstrap", "--quiet", "--variant=minbase", *excluded),
                *(f"--include={','.join(_PACKAGES)}", _SUITE, str(partial)),
            )
            # Empty, it is made anew at every boot.
            (partial / "etc/machine-id").write_bytes(b"")
            partial.rename(tree)
    return tree
