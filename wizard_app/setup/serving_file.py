"""The address of a running wizard, in a file beside its token, for other processes."""

from __future__ import annotations

import contextlib
import fcntl
import grp
import os
import pwd
import re
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from platform_common.errors import PlatformError
from platform_common.formats.decode import from_json
from platform_common.net.connect import FAMILIES, own_addresses
from platform_common.paths import Found
from platform_common.records import record_file
from platform_common.storage.atomic_write import Owner, make_folder, write_atomic
from platform_common.storage.file_lock import changing
from platform_common.storage.stale_files import remove_left_overs

_MODE = 0o600
_TCP = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})")
_EVERYWHERE = ("0.0.0.0", "[::]")  # noqa: S104 - compared with, not listened on
# SIOCGIFADDR, and the place of the address in its answer.
_ADDRESS_OF, _ADDRESS = 0x8915, slice(20, 24)
# The text reaches terminals and agetty, which interprets backslashes.
_SHOWN = re.compile(r"[!-\[\]-~]{0,300}")
# More than any device has; otherwise, whoever can write the file could fill a screen, or open
# every port in the firewall.
_MOST_BASES, _MOST_BINDS = 256, 16


class Serving(Struct, frozen=True):
    """The address and the process of a running wizard.

    `bases` are the base URLs, the best first; behind a proxy or on a socket file there may be
    none. `fingerprint` is its certificate's, if it has one. `bind` has the addresses that it
    listens on, separated by blanks.
    """

    pid: int
    bases: tuple[str, ...] = ()
    fingerprint: str = ""
    bind: str = ""
    behind_proxy: bool = False

    def __post_init__(self) -> None:
        """Refuse anything but URLs and a fingerprint: another user may have written it."""
        if not all(map(_SHOWN.fullmatch, (*self.bases, self.fingerprint))):
            raise ValueError("an address or a fingerprint contains invalid characters")
        if len(self.bases) > _MOST_BASES or len(self.bind.split()) > _MOST_BINDS:
            raise ValueError("there are too many addresses")

    def now(self) -> Serving:
        """Return a copy with this machine's current addresses, which may appear late or change."""
        if self.behind_proxy or not self.bind:
            return self
        scheme = "https" if self.fingerprint else "http"
        return structs.replace(self, bases=all_bases(self.bind.split(), scheme))

    def urls(self, token: str) -> tuple[str, ...]:
        """The launch URLs; without a base, only the path."""
        return tuple(launch_url(base, token) for base in self.bases or ("",))


class ServingFile:
    """The file with the address of a running wizard, for other commands."""

    def __init__(self, token_file: Path) -> None:
        self.path = token_file.with_name(f"{token_file.name}.address")

    def write(self, serving: Serving) -> None:
        """Write the file; raises `PlatformError`."""
        put(self.path, msgspec.json.encode(serving))

    def read(self) -> Serving | None:
        """Read the file; None if no wizard is running. Raises `RecordError`."""
        found = Found(self.path)
        serving = record_file.read_or(found, lambda data: from_json(data, Serving), None)
        return serving if serving and _is_alive(serving.pid) else None

    def user(self) -> int | None:
        """The user of that process; None if unknown."""
        with contextlib.suppress(OSError):
            return self.path.lstat().st_uid
        return None

    def clear(self, pid: int) -> None:
        """Remove the file if it is this process's."""
        with contextlib.suppress(PlatformError, OSError):
            serving = self.read()
            if serving is not None and serving.pid == pid:
                self.path.unlink()


def launch_url(base: str, token: str) -> str:
    """The launch URL; without a token, the start page."""
    return f"{base}/?token={token}" if token else f"{base}/"


def all_bases(binds: Iterable[str], scheme: str) -> tuple[str, ...]:
    """Those of several addresses, each once."""
    return tuple(dict.fromkeys(base for bind in binds for base in bases(bind, scheme)))


def bases(bind: str, scheme: str) -> tuple[str, ...]:
    """The base URLs of a server that listens on `bind`; none for a socket file."""
    found = _TCP.fullmatch(bind)
    if found is None:
        return ()
    host, port = found["host"], found["port"]
    hosts = [host]
    if host in _EVERYWHERE:
        families = [socket.AF_INET] if host == "0.0.0.0" else FAMILIES  # noqa: S104 - as above
        found_ones = own_addresses(families) or interface_addresses()
        hosts = [f"[{one}]" if ":" in one else one for one in found_ones]
        hosts += [f"{machine_name()}.local", *(() if hosts else ("127.0.0.1",))]
    return tuple(f"{scheme}://{host}:{port}" for host in hosts)


def interface_addresses() -> list[str]:
    """The IPv4 addresses of this machine's interfaces, also without a route."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(probe, _ADDRESS_OF, struct.pack("256s", name.encode()))
                found.append(socket.inet_ntoa(answer[_ADDRESS]))
    return [address for address in found if not address.startswith("127.")]


def machine_name() -> str:
    """The first label of this machine's name, in lower case."""
    return socket.gethostname().partition(".")[0].lower()


def owner_of(path: Path) -> Owner | None:
    """The owner of the file at `path`, by name; None if unknown."""
    try:
        status = path.lstat()
        return Owner(pwd.getpwuid(status.st_uid)[0], grp.getgrgid(status.st_gid)[0])
    except (OSError, KeyError):
        return None


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def put(path: Path, data: bytes, owner: Owner | None = None) -> None:
    """Write a file with mode 0600 at `path`, replacing any file or link.

    Raises `PlatformError`.
    """
    make_folder(path.parent)
    with changing(path):
        remove_left_overs(path.parent, of_name=path.name)
        write_atomic(path, data, mode=_MODE, owner=owner)
