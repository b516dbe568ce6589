"""The name and the time zone of a device."""

from __future__ import annotations

import contextlib
import socket

from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platform_common.records.record_file import read_line

_ZONES = "zoneinfo/"


def device_name(*devices: Paths) -> str:
    """The name of the first device that has one: this machine's name, or that in a folder's file.

    If none has one, it is the name of this machine.
    """
    return next(filter(None, map(_name, devices)), "") or socket.gethostname()


def time_zone(*devices: Paths) -> str:
    """The time zone of the first device that has one; empty if none has."""
    return next(filter(None, map(_zone, devices)), "")


def _name(paths: Paths) -> str:
    return socket.gethostname() if paths.is_machine else _line(paths, "/etc/hostname")


def _zone(paths: Paths) -> str:
    with contextlib.suppress(OSError):
        return str(paths.on_device("/etc/localtime").readlink()).partition(_ZONES)[2]
    return _line(paths, "/etc/timezone")


def _line(paths: Paths, path: str) -> str:
    try:
        return read_line(paths.on_device(path)) or ""
    except PlatformError:
        return ""
