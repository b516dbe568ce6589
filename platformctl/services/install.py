"""The units of this device: put in their places, switched on, told of, and taken away."""

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
# Which of the two folders of systemd's an administrator's programs are below.
LOCAL = Path("usr/local/lib")
# What a shipped file is called, and where it goes, below the folder above.
_UNITS = Path("systemd/system")
_SUFFIXES = (".path", ".service", ".socket")
_OTHERS = {
    "nftables.conf": f"{_UNITS}/nftables.service.d/50-platform.conf",
    "platform.preset": "systemd/system-preset/50-platform.preset",
    "sysusers.conf": "sysusers.d/platform.conf",
    "tmpfiles.conf": "tmpfiles.d/platform.conf",
}
# It keeps nothing in memory but what it showed last; the wizard keeps secrets.
_RESTARTED = "platform-pwa.service"


class ServicesInstall(Struct, frozen=True):
    """Which files were put in their places, and which units systemd starts from now on."""

    files: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()


class ServicesRemove(Struct, frozen=True):
    """Which files were there, and are gone."""

    files: tuple[str, ...] = ()


class ServiceState(Struct, frozen=True):
    """One of our units, in systemd's words."""

    unit: str = ""
    active_state: str = UNAVAILABLE
    enabled: bool = False


def files(programs: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file to install: its path below systemd's folder, and its text.

    `programs` is the folder of our programs on the device.
    """
    for source in sorted(units().iterdir()):
        place = _OTHERS.get(source.name)
        if source.suffix in _SUFFIXES:
            place = f"{_UNITS}/{source.name}"
        if place is not None:
            yield Path(place), source.read_bytes().replace(_PROGRAMS, bytes(programs))


def install(root: Path, programs: Path, below: Path = LOCAL) -> list[Path]:
    """Put all files below `root`; raises `PlatformError`, and then all is as it was.

    Nothing is started.
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


def switch_on(root: Path, known: Mapping[str, bool]) -> tuple[str, ...]:
    """Make the users and the folders, and have systemd start the units; returns which.

    On the machine itself at once, in a folder at its next boot. A unit that was `known`
    before is started only if it was enabled then, and one that is masked not at all.
    Raises `PlatformError`.
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
    """The units that are installed already, and whether systemd starts them.

    None where none is started: then nobody switched anything on yet.
    """
    # In an image they lead to what is not there from here.
    started = {link.name for link in (root / "etc/systemd/system").glob("*.wants/*")}
    known = {
        unit: unit in started for unit in _preset_units() if (root / below / _UNITS / unit).exists()
    }
    return known if any(known.values()) else {}


def remove(root: Path, below: Path = LOCAL) -> list[Path]:
    """Stop the units, and take away what was installed; raises `PlatformError`.

    Users, folders and what is in them stay.
    """
    here = root == Path("/")
    check_inside(root, (below / place.parent for place, _ in files(Path("/"))))
    there = [path for place, _ in files(Path("/")) if (path := root / below / place).is_file()]
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
    """What systemd says of each of our units that is no template."""
    names = [
        path.name for path, _ in files(Path("/")) if path.parent == _UNITS and "@" not in path.name
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
            f"{argv[0]} could not do its part: {said}",
            hint="Once that is mended, run the same again.",
        )
