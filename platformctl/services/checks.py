"""Checks, before anything is written, whether the units of this device can be installed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from platform_common.errors import PlatformError, WrongUsageError

PROGRAMS = ("platformctl", "pwa-app", "wizard-app")
_TOOLS = ("systemd-sysusers", "systemd-tmpfiles", "systemctl")
# Hidden from the services, or private to each of them.
_HIDDEN = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108 - nothing is put there
# Characters that need no quoting in a unit.
_PLAIN = re.compile(r"/[A-Za-z0-9_.+/-]*")
# It exists when systemd is running: sd_booted(3).
_BOOTED = Path("/run/systemd/system")
_INSTEAD = "Give the folder of the programs with --programs."


def own_programs(called: Path) -> Path:
    """The folder of our programs, found from the path by which one was `called`."""
    folder = called.absolute().parent
    return folder if _missing(folder) is None else called.resolve().parent


def check_programs(root: Path, programs: Path) -> None:
    """Raise if the services of the device below `root` would not find the programs.

    Raises `WrongUsageError` for a path that no unit can contain, and `PlatformError`.
    """
    check_name(programs)
    folder = root / programs.relative_to("/")
    missing = _missing(folder)
    if missing is not None:
        raise PlatformError(f"{folder} does not contain {missing}", hint=_INSTEAD)
    places = [programs]
    if root == Path("/"):
        places += [folder.resolve(), *_interpreter(folder / PROGRAMS[0])]
    for place in places:
        for hidden in _HIDDEN:
            if place.is_relative_to(hidden):
                raise PlatformError(
                    f"{place} is below {hidden}, which the services cannot see",
                    hint="Install the programs elsewhere, such as below /opt.",
                )


def check_name(programs: Path) -> None:
    """Raise `WrongUsageError` if a unit cannot contain the path of the folder."""
    if not _PLAIN.fullmatch(str(programs)):
        raise WrongUsageError(f"The path {str(programs)!a} cannot be used in a unit", hint=_INSTEAD)


def check_system(root: Path, below: Path) -> None:
    """Raise `PlatformError` if users, folders and units cannot be created below `root`."""
    if os.geteuid() != 0:
        raise PlatformError("Only root may do that", hint="Run it with sudo, or add --files-only.")
    for tool in _TOOLS:
        if shutil.which(tool) is None:
            raise PlatformError(f"{tool} is not installed", hint="It comes with systemd.")
    if root == Path("/") and not _BOOTED.is_dir():
        raise PlatformError(
            "systemd does not run here",
            hint="To prepare an image, give its folder with --root.",
        )
    if not (root / "etc/passwd").is_file():
        raise PlatformError(
            f"{root} is not a system: it has no /etc/passwd", hint="Give its folder with --root."
        )
    check_inside(root, map(Path, ("etc/systemd/system", "var/lib", "home")))
    for folder in ("etc", "var/lib", below):
        wanted = root / folder
        place = next(one for one in (wanted, *wanted.parents) if one.exists())
        if not os.access(place, os.W_OK):
            raise PlatformError(
                f"{place} cannot be written", hint="It may be mounted read-only; see: findmnt"
            )


def check_inside(root: Path, folders: Iterable[Path]) -> None:
    """Raise `PlatformError` if a link leads one of `folders` out of `root`.

    Such a link would be right on the device, but here it points to this machine's files.
    """
    real = root.resolve()
    for folder in dict.fromkeys(folders):
        if not (place := root / folder).resolve().is_relative_to(real):
            raise PlatformError(
                f"{place} leads out of {root}",
                hint="Make the link relative, so it also resolves inside the image.",
            )


def _missing(folder: Path) -> str | None:
    return next((name for name in PROGRAMS if not os.access(folder / name, os.X_OK)), None)


def _interpreter(program: Path) -> list[Path]:
    """The interpreter in the first line of `program`, resolved, if there is one."""
    with program.open("rb") as file:
        line = file.readline(4096)
    words = line.removeprefix(b"#!").split()
    named = line.startswith(b"#!/") and bool(words)
    return [Path(os.fsdecode(words[0])).resolve()] if named else []
