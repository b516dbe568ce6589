"""Checks of storage: free space, mounts, swap."""

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
    """Whether the file system with the gateways' data has free space."""
    folders = (path for path in map(paths.on_device, _DATA_FOLDERS) if path.is_dir())
    folder = next(folders, None)
    if folder is None:
        return failed(
            f"{paths.root}: there is no such folder",
            "Set PLATFORM_ROOT to the device's folder, or unset it",
        )
    found = os.statvfs(folder)
    # File systems that allocate inodes dynamically, such as btrfs, report 0 inodes.
    no_nodes = found.f_files > 0 and found.f_favail == 0
    return judge_room(folder, found.f_bavail * found.f_frsize, no_nodes=no_nodes)


def judge_room(folder: Path, free_bytes: int, *, no_nodes: bool) -> Finding:
    """Fail below 50 MB, warn below 500 MB."""
    fix = f"See what uses the space with: du -xh --max-depth=2 {folder} | sort -h | tail"
    if no_nodes:
        return failed(f"{folder} has no free inode, so no file can be created", fix)
    detail = f"{human_size(free_bytes)} free on {folder}"
    if free_bytes < _FAIL_BELOW:
        return failed(detail, fix)
    return warned(detail, fix) if free_bytes < _WARN_BELOW else passed(detail)


def mounts_health(paths: Paths) -> Finding:
    """Whether the folders that must be writable are."""
    return judge_mounts(kernel_text(Path("/proc/self/mountinfo")) or "", _WRITTEN_TO)


def judge_mounts(mountinfo: str, folders: Sequence[str]) -> Finding:
    """Fail if one of `folders` is on a file system that is mounted read-only (proc(5))."""
    read_only = set()
    for folder in folders:
        above = [PurePosixPath(folder), *PurePosixPath(folder).parents]
        holders = [
            (mount_point, "ro" in options)
            for mount_point, options in map(_mount, mountinfo.splitlines())
            if mount_point in above
        ]
        # The deepest mount applies, and of several at one place the last.
        depth = max((len(mount_point.parts) for mount_point, _ in holders), default=0)
        last = [held for held in holders if len(held[0].parts) == depth][-1:]
        read_only |= {str(mount_point) for mount_point, is_read_only in last if is_read_only}
    if not read_only:
        return passed()
    names = " and ".join(sorted(read_only))
    return failed(
        f"{names} is mounted read-only",
        "The kernel does this when a disk fails: check with dmesg -l err,warn, then run"
        f" mount -o remount,rw {min(read_only)}",
    )


def _mount(line: str) -> tuple[PurePosixPath, set[str]]:
    """The mount point in a line of mountinfo, and the options of mount and file system."""
    fields, _, of_file_system = line.partition(" - ")
    _, _, _, _, mount_point, options, *optional = [*fields.split(), *[""] * 6]
    path = mount_point.encode().decode("unicode_escape") if "\\" in mount_point else mount_point
    found = set(of_file_system.rpartition(" ")[2].split(","))
    # A sandboxed service sees copies of the machine's mounts that are read-only for itself.
    if not any(one.startswith("master:") for one in optional):
        found.update(options.split(","))
    return PurePosixPath(path), found


def zram_swap(paths: Paths) -> Finding:
    """Whether there is swap in compressed memory (zram)."""
    return judge_swap(kernel_text(Path("/proc/swaps")) or "")


def judge_swap(swaps: str) -> Finding:
    """Warn if no swap is in compressed memory."""
    if any(line.startswith("/dev/zram") for line in swaps.splitlines()):
        return passed()
    return warned(
        "there is no swap in compressed memory (zram), so a lack of memory kills programs",
        "Install it with: apt install systemd-zram-generator",
    )
