"""Installs, enables, lists and removes the units of this device."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from platform_common.control_answers import UNAVAILABLE
from platform_common.errors import PlatformError
from platform_common.process.run import run
from platform_common.resources import units
from platform_common.storage.atomic_write import make_folder, write_atomic
from platform_common.storage.safe_read import read_own
from platformctl.services.checks import check_inside
from platformctl.services.systemd import unit_states

_PROGRAMS = b"@programs@"
_TIMEOUT_S = 90.0
_LIMIT_BYTES = 1 << 20
# systemd's folder for programs that an administrator installed.
LOCAL = Path("usr/local/lib")
# Shipped file name to path below that folder.
_UNITS = Path("systemd/system")
_SUFFIXES = (".path", ".service", ".socket")
_OTHERS = {
    "nftables.conf": f"{_UNITS}/nftables.service.d/50-platform.conf",
    "platform.preset": "systemd/system-preset/50-platform.preset",
    "sysusers.conf": "sysusers.d/platform.conf",
    "tmpfiles.conf": "tmpfiles.d/platform.conf",
}
# Its memory can be lost; the wizard has secrets in memory and is not restarted.
_RESTARTED = "platform-pwa.service"


class ServicesInstall(Struct, frozen=True):
    """The installed files, and the units that systemd starts from now on."""

    files: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()


class ServicesRemove(Struct, frozen=True):
    """The files that were removed."""

    files: tuple[str, ...] = ()


class ServiceState(Struct, frozen=True):
    """The state of one of our units, in systemd's words."""

    unit: str = ""
    active_state: str = UNAVAILABLE
    enabled: bool = False


def files(programs: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file to install: its path below systemd's folder, and its text.

    `programs` is the folder of our programs on the device.
    """
    for place, source in _sources():
        yield place, source.read_bytes().replace(_PROGRAMS, bytes(programs))


def _sources() -> Iterator[tuple[Path, Path]]:
    """Each file to install: its path below systemd's folder, and the shipped file."""
    for source in sorted(units().iterdir()):
        if source.suffix in _SUFFIXES:
            yield _UNITS / source.name, source
        elif place := _OTHERS.get(source.name):
            yield Path(place), source


def install(root: Path, programs: Path, below: Path = LOCAL) -> list[Path]:
    """Write all files below `root`, without starting anything.

    Raises `PlatformError`, after which nothing has changed.
    """
    before: dict[Path, bytes | None] = {}
    found = list(files(programs))
    check_inside(root, (below / place.parent for place, _ in found))
    try:
        for place, text in found:
            path = root / below / place
            before[path] = _read(path)
            make_folder(path.parent)
            write_atomic(path, text)
    except PlatformError:
        _put_back(before)
        raise
    return list(before)


def enable_units(root: Path, known: Mapping[str, bool]) -> tuple[str, ...]:
    """Create users and folders, let systemd start the units, and return their names.

    On this machine they start at once, in a folder at its next boot. A unit that was
    `known` before is only started if it was enabled, and a masked one never. Raises
    `PlatformError`.
    """
    here = root == Path("/")
    wanted = [unit for unit in _preset_units() if not _is_masked(root, unit)]
    new = [unit for unit in wanted if unit not in known]
    started = tuple(unit for unit in wanted if known.get(unit, True))
    _call("systemd-sysusers", f"--root={root}", "platform.conf")
    _call("systemd-tmpfiles", "--create", f"--root={root}", "platform.conf")
    if here:
        _call("systemctl", "daemon-reload")
    if new:
        _call("systemctl", f"--root={root}", "preset", *new)
    if here:
        _call("systemctl", "try-restart", _RESTARTED)
        _call("systemctl", "start", *started)
    return started


def known_units(root: Path, below: Path = LOCAL) -> Mapping[str, bool]:
    """The units that are already installed, and whether systemd starts them.

    Empty if none is enabled: then they were never switched on.
    """
    # In an image these links point to paths that do not exist here.
    started = {link.name for link in (root / "etc/systemd/system").glob("*.wants/*")}
    known = {
        unit: unit in started for unit in _preset_units() if (root / below / _UNITS / unit).exists()
    }
    return known if any(known.values()) else {}


def remove(root: Path, below: Path = LOCAL) -> list[Path]:
    """Stop the units and remove the installed files; raises `PlatformError`.

    Users and folders stay, with their contents.
    """
    here = root == Path("/")
    check_inside(root, (below / place.parent for place, _ in _sources()))
    there = [path for place, _ in _sources() if (path := root / below / place).is_file()]
    ours = [one.name for one in there if one.parent.name == _UNITS.name and "@" not in one.name]
    if ours:
        now = ("--now",) if here else ()
        _call("systemctl", f"--root={root}", "disable", *now, *sorted(ours))
    for path in there:
        path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
    if here and there:
        _call("systemctl", "daemon-reload")
    return there


def states() -> list[ServiceState]:
    """The state of each of our units, except templates."""
    names = [
        place.name for place, _ in _sources() if place.parent == _UNITS and "@" not in place.name
    ]
    return [
        ServiceState(name, state.active_state, state.enabled)
        for name, state in unit_states(names).items()
    ]


def _read(path: Path) -> bytes | None:
    with contextlib.suppress(FileNotFoundError):
        return read_own(path, _LIMIT_BYTES)
    return None


def _put_back(before: Mapping[Path, bytes | None]) -> None:
    for path, data in before.items():
        with contextlib.suppress(PlatformError, OSError):
            if data is None:
                path.unlink(missing_ok=True)
            else:
                write_atomic(path, data)


def _preset_units() -> Iterator[str]:
    for line in (units() / "platform.preset").read_text().splitlines():
        verb, _, unit = line.partition(" ")
        if verb == "enable":
            yield unit


def _is_masked(root: Path, unit: str) -> bool:
    links = (root / folder / unit for folder in ("etc/systemd/system", "run/systemd/system"))
    return any(link.is_symlink() and str(link.readlink()) == os.devnull for link in links)


def _call(*argv: str) -> None:
    finished = run(argv, timeout_s=_TIMEOUT_S)
    if finished.status:
        said = finished.last_line or f"it ended with status {finished.status}"
        raise PlatformError(
            f"{argv[0]} failed: {said}", hint="Fix that, then run the command again."
        )
