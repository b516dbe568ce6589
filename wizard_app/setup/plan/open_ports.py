"""The ports over which the device is being set up; the firewall must not close them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from platform_common.errors import AccessError, PlatformError
from platform_common.paths import Paths
from platform_common.storage.safe_read import read_own
from wizard_app.setup.settings import WizardSettings

_PORT = re.compile(r"(?im)^[ \t]*port[ \t=]+\"?([0-9]{1,5})\"?[ \t]*(?:#.*)?$")
# An IPv6 address without brackets has no port.
_ADDRESS_PORT = re.compile(
    r"(?im)^[ \t]*listenaddress[ \t=]+\"?(?:\[[^]\n]*\]|[^:\s\[]+):([0-9]{1,5})(?![^\s#\"])"
)
# ListenStream= of ssh.socket: a port alone, or after an address.
_LISTEN_STREAM = re.compile(
    r"(?m)^[ \t]*ListenStream[ \t]*=[ \t]*(?:(?:\[[^]\n]*\]|[0-9.]+):)?([0-9]{1,5})[ \t]*$"
)
# sshd's configuration file, its folder of further files, and how they name a port.
_SOURCES = (
    ("/etc/ssh/sshd_config", (_PORT, _ADDRESS_PORT)),
    ("/etc/systemd/system/ssh.socket", (_LISTEN_STREAM,)),
)
# Addresses are separated by blanks; the path of a socket file has no port.
_BIND = re.compile(r"(?<!\S)(?!unix:)\S+:([0-9]{1,5})(?!\S)")
_LIMIT_BYTES = 1 << 20
_HIGHEST, _HTTPS = 65535, 443


class OpenPorts(NamedTuple):
    """The ports that stay open, and configuration files that could not be read."""

    ports: frozenset[int]
    problems: tuple[str, ...] = ()


def open_ports(settings: WizardSettings) -> OpenPorts:
    """The ports of sshd, or of its systemd socket, and of this wizard or its proxy.

    Without root, some files may be unreadable, and root's rules would then differ.
    """
    problems: list[str] = []
    found = {*_of_sshd(settings.paths, problems)}
    found.update(map(int, _BIND.findall(settings.bind)))
    if settings.behind_proxy:
        found.add(_HTTPS)
    ports = frozenset(port for port in found if 0 < port <= _HIGHEST)
    return OpenPorts(ports, tuple(problems))


def _of_sshd(device: Paths, problems: list[str]) -> Iterator[int]:
    for name, patterns in _SOURCES:
        file = device.on_device(name)
        paths = [file]
        try:
            paths += sorted(file.parent.glob(f"{file.name}.d/*.conf"))
        except OSError as error:
            problems.append(_unread(AccessError.of(file.parent, error)))
        for path in paths:
            text = _text(path, problems)
            for pattern in patterns:
                yield from map(int, pattern.findall(text))


def _text(path: Path, problems: list[str]) -> str:
    try:
        return read_own(path, _LIMIT_BYTES, links=True).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except PlatformError as error:
        problems.append(_unread(error))
        return ""


def _unread(error: PlatformError) -> str:
    return f"{error.message}: the firewall opens no SSH port that only this file names"
