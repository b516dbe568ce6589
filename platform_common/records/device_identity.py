"""The name of a device."""

from __future__ import annotations

import socket

from platform_common.errors import PlatformError
from platform_common.paths import HOSTNAME, Paths
from platform_common.records.record_file import read_line


def device_name(*devices: Paths) -> str:
    """The name of the first device that has one: this machine's name, or that in a folder's file.

    If none has one, it is the name of this machine.
    """
    return next(filter(None, map(_name, devices)), "") or socket.gethostname()


def _name(paths: Paths) -> str:
    if paths.is_machine:
        return socket.gethostname()
    try:
        return read_line(paths.on_device(HOSTNAME)) or ""
    except PlatformError:
        return ""
