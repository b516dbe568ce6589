"""Checks of what things are stored on: room, mounts, swap."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from platform_common.cli.terminal import human_size
from platform_common.paths import AGENT_HOME, Paths
from platformctl.checks.finding import Finding, failed, kernel_text, passed, warned

_FAIL_BELOW = 50_000_000
_WARN_BELOW = 500_000_000
_DATA_FOLDERS = (AGENT_HOME, "/home", "/")
_WRITTEN_TO = ("/", "/etc/platform", "/var/lib/platform", "/home", AGENT_HOME)


def data_partition_free(paths: Paths) -> Finding:
    """Whether there is room where the gateways keep their data."""
    folders = (path for path in map(paths.on_device, _DATA_FOLDERS) if path.is_dir())
    folder = next(folders, None)
    if folder is None:
        return failed(
            f"{paths.root}: there is no such folder",
            "Set PLATFORM_ROOT to the folder that stands for the device, or to nothing",
        )
    found = os.statvfs(folder)
    # File systems that make nodes as they need them say that they have none.
    no_nodes = found.f_files > 0 and found.f_favail == 0
    return judge_room(folder, found.f_bavail * found.f_frsize, no_nodes=no_nodes)


def judge_room(folder: Path, free_bytes: int, *, no_nodes: bool) -> Finding:
    """Fail below 50 MB, warn below 500 MB."""
    fix = f"See what takes the room with: du -xh --max-depth=2 {folder} | sort -h | tail"
    if no_nodes:
        return failed(f"{folder} has no room for another file, however small", fix)
    detail = f"{human_size(free_bytes)} free on {folder}"
    if free_bytes < _FAIL_BELOW:
        return failed(detail, fix)
    return warned(detail, fix) if free_bytes < _WARN_BELOW else passed(detail)


def mounts_health(paths: Paths) -> Finding:
    """Whether what must be written to can be."""
    return judge_mounts(kernel_text(Path("/proc/self/mountinfo")) or "", _WRITTEN_TO)


def judge_mounts(mountinfo: str, folders: Sequence[str]) -> Finding:
    """Fail when one of `folders` is on a file system that is mounted read-only (proc(5))."""
    read_only = set()
    for folder in folders:
        above = [PurePosixPath(folder), *PurePosixPath(folder).parents]
        holders = [
            (mount_point, "ro" in options)
            for mount_point, options in map(_mount, mountinfo.splitlines())
            if mount_point in above
        ]
        # The deepest mount counts, and of several at one place the last.
        depth = max((len(mount_point.parts) for mount_point, _ in holders), default=0)
        last = [held for held in holders if len(held[0].parts) == depth][-1:]
        read_only |= {str(mount_point) for mount_point, is_read_only in last if is_read_only}
    if not read_only:
        return passed()
    names = " and ".join(sorted(read_only))
    return failed(
        f"{names} is mounted read-only",
        "The kernel does so when a disk fails: look with dmesg -l err,warn, then run"
        f" mount -o remount,rw {min(read_only)}",
    )


def _mount(line: str) -> tuple[PurePosixPath, set[str]]:
    """Where a line of mountinfo mounts, and the options of the mount and its file system."""
    fields, _, of_file_system = line.partition(" - ")
    _, _, _, _, mount_point, options, *optional = [*fields.split(), *[""] * 6]
    path = mount_point.encode().decode("unicode_escape") if "\\" in mount_point else mount_point
    found = set(of_file_system.rpartition(" ")[2].split(","))
    # A service that systemd shuts in sees copies of the machine's mounts, read-only for itself.
    if not any(one.startswith("master:") for one in optional):
        found.update(options.split(","))
    return PurePosixPath(path), found


def zram_swap(paths: Paths) -> Finding:
    """Whether memory that is short can be compressed."""
    return judge_swap(kernel_text(Path("/proc/swaps")) or "")


def judge_swap(swaps: str) -> Finding:
    """Warn when none of the swaps is compressed memory."""
    if any(line.startswith("/dev/zram") for line in swaps.splitlines()):
        return passed()
    return warned(
        "no swap in compressed memory (zram): what does not fit is killed",
        "Install it with: apt install systemd-zram-generator",
    )
