"""By which ports who sets up the device comes in: no firewall may close them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from platform_common.errors import PlatformError, UnreadableError
from platform_common.paths import Paths
from platform_common.storage.safe_read import read_own
from wizard_app.setup.settings import WizardSettings

_PORT = re.compile(r"(?im)^[ \t]*port[ \t=]+\"?([0-9]{1,5})\"?[ \t]*(?:#.*)?$")
# An address of IPv6 that has no brackets has no port, either.
_ADDRESS_PORT = re.compile(
    r"(?im)^[ \t]*listenaddress[ \t=]+\"?(?:\[[^]\n]*\]|[^:\s\[]+):([0-9]{1,5})(?![^\s#\"])"
)
# Of addresses with a blank between two; the path of a socket file is none.
# Where systemd listens for sshd: a port alone, or behind an address.
_LISTEN_STREAM = re.compile(
    r"(?m)^[ \t]*ListenStream[ \t]*=[ \t]*(?:(?:\[[^]\n]*\]|[0-9.]+):)?([0-9]{1,5})[ \t]*$"
)
# What says where sshd listens: a file, with those of its folder, and what a port looks like.
_SOURCES = (
    ("/etc/ssh/sshd_config", (_PORT, _ADDRESS_PORT)),
    ("/etc/systemd/system/ssh.socket", (_LISTEN_STREAM,)),
)
_BIND = re.compile(r"(?<!\S)(?!unix:)\S+:([0-9]{1,5})(?!\S)")
_LIMIT_BYTES = 1 << 20
_HIGHEST, _HTTPS = 65535, 443


class WaysIn(NamedTuple):
    """The ports that stay open, and what could not be read of where others may be told."""

    ports: frozenset[int]
    problems: tuple[str, ...] = ()


def ways_in(settings: WizardSettings) -> WaysIn:
    """The ports of sshd, or of systemd for it, and where this wizard, or its proxy, is served.

    Who is not root may read less than root does, whose rules would then be others.
    """
    problems: list[str] = []
    found = {*_of_sshd(settings.paths, problems)}
    found.update(map(int, _BIND.findall(settings.bind)))
    if settings.behind_proxy:
        found.add(_HTTPS)
    ports = frozenset(port for port in found if 0 < port <= _HIGHEST)
    return WaysIn(ports, tuple(problems))


def _of_sshd(device: Paths, problems: list[str]) -> Iterator[int]:
    for name, patterns in _SOURCES:
        file = device.on_device(name)
        paths = [file]
        try:
            paths += sorted(file.parent.glob(f"{file.name}.d/*.conf"))
        except OSError as error:
            problems.append(_unread(UnreadableError.of(file.parent, error)))
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
    return f"{error.message}: the firewall opens no port for SSH that it tells of"
