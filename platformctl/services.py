"""The units of this device: put in their places, and switched on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import PlatformError
from platform_common.files import make_folder, write_atomic
from platform_common.processes import run
from platform_common.resources import units

_PROGRAMS = b"@programs@"
_TIMEOUT_S = 60.0
# Which of the two folders of systemd's an administrator's programs are below.
LOCAL = Path("usr/local/lib")
# What a shipped file is called, and where it goes, below the folder above.
_SUFFIXES = dict.fromkeys((".path", ".service", ".socket"), "systemd/system")
_OTHERS = {
    "nftables.conf": "systemd/system/nftables.service.d/50-platform.conf",
    "platform.preset": "systemd/system-preset/50-platform.preset",
    "sysusers.conf": "sysusers.d/platform.conf",
    "tmpfiles.conf": "tmpfiles.d/platform.conf",
}


def files(programs: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file to install: its path below systemd's folder, and its text.

    `programs` is the folder of our programs on the device.
    """
    for source in sorted(units().iterdir()):
        place = _OTHERS.get(source.name)
        if source.suffix in _SUFFIXES:
            place = f"{_SUFFIXES[source.suffix]}/{source.name}"
        if place is not None:
            yield Path(place), source.read_bytes().replace(_PROGRAMS, bytes(programs))


def install(root: Path, programs: Path, below: Path = LOCAL) -> list[Path]:
    """Put all files below `root`; raises `PlatformError`. Nothing is started."""
    installed = []
    for place, text in files(programs):
        path = root / below / place
        make_folder(path.parent)
        write_atomic(path, text)
        installed.append(path)
    return installed


def switch_on(root: Path) -> None:
    """Make the users and the folders, and have systemd start the units.

    On the machine itself at once, in a folder at its next boot. Raises `PlatformError`.
    """
    here = root == Path("/")
    presets = list(_preset_units())
    _call("systemd-sysusers", f"--root={root}", "platform.conf")
    _call("systemd-tmpfiles", "--create", f"--root={root}", "platform.conf")
    if here:
        _call("systemctl", "daemon-reload")
    _call("systemctl", f"--root={root}", "preset", *presets)
    if here:
        _call("systemctl", "start", *presets)


def _preset_units() -> Iterator[str]:
    for line in (units() / "platform.preset").read_text().splitlines():
        verb, _, unit = line.partition(" ")
        if verb == "enable":
            yield unit


def _call(*argv: str) -> None:
    finished = run(argv, timeout_s=_TIMEOUT_S)
    if finished.status:
        raise PlatformError(f"{argv[0]} could not be used: {finished.last_line}")
