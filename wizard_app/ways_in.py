"""By which ports who sets up the device comes in: no firewall may close them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platform_common.reading import read_bounded
from wizard_app.settings import WizardSettings

_PORT = re.compile(r"(?im)^[ \t]*port[ \t=]+\"?([0-9]{1,5})\"?[ \t]*(?:#.*)?$")
_ADDRESS_PORT = re.compile(r"(?im)^[ \t]*listenaddress[ \t=]+\S*:([0-9]{1,5})[ \t]*(?:#.*)?$")
_BIND = re.compile(r".*:([0-9]{1,5})")
_LIMIT_BYTES = 1 << 20
_HIGHEST, _HTTPS = 65535, 443


def ports(settings: WizardSettings) -> frozenset[int]:
    """The ports that sshd is told to listen on, and where this wizard, or its proxy, is served."""
    found = {*_of_sshd(settings.paths)}
    if (served := _BIND.fullmatch(settings.bind)) is not None:
        found.add(int(served[1]))
    if settings.behind_proxy:
        found.add(_HTTPS)
    return frozenset(port for port in found if 0 < port <= _HIGHEST)


def _of_sshd(device: Paths) -> Iterator[int]:
    folder = device.on_device("/etc/ssh")
    for path in (folder / "sshd_config", *sorted(folder.glob("sshd_config.d/*.conf"))):
        for pattern in (_PORT, _ADDRESS_PORT):
            yield from map(int, pattern.findall(_text(path)))


def _text(path: Path) -> str:
    try:
        return read_bounded(path, _LIMIT_BYTES).decode("utf-8", "replace")
    except PlatformError:
        return ""
