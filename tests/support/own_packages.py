"""Our packages and their libraries, for machines: wherever this checkout lies, services see them.

A service sees neither the homes of users nor the temporary files of others.
"""

from __future__ import annotations

import atexit
import configparser
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dev.distributions import ROOT

PACKAGES, LIBRARIES = "/opt/packages", "/opt/libraries"


def shared_folders() -> Iterator[tuple[Path, str]]:
    """The folders that a machine is to have, and where."""
    yield packages(), PACKAGES
    yield _libraries(), LIBRARIES


@cache
def packages() -> Path:
    """A copy of our packages, each folder in the place that it has once it is installed."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", "utf-8")
    names = settings["options"]["packages"].split()
    mapped = dict(
        line.split(" = ") for line in settings["options"]["package_dir"].strip().splitlines()
    )
    folder = Path(tempfile.mkdtemp(prefix="platform-packages-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in names:
        if "." not in name or name in mapped:
            source = ROOT / mapped.get(name, name)
            shutil.copytree(source, folder / name.replace(".", "/"), dirs_exist_ok=True)
    return _readable(folder)


@cache
def _libraries() -> Path:
    """Those of the environment that runs the tests; a copy, if a umask keeps others out there."""
    folder = Path(sysconfig.get_path("purelib"))
    if folder.stat().st_mode & 0o005 == 0o005:
        return folder
    copy = Path(tempfile.mkdtemp(prefix="platform-libraries-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    return _readable(Path(shutil.copytree(folder, copy, dirs_exist_ok=True)))


def _readable(folder: Path) -> Path:
    """Let the users of the services read it."""
    subprocess.run(["chmod", "--recursive", "u=rwX,go=rX", folder], check=True)
    return folder
