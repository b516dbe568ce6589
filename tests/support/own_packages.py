"""Our packages and their libraries, for machines, at a place that services can read.

Services can read neither the home folders of users nor the temporary files of others.
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
    """The folders to mount on a machine, and where."""
    yield packages(), PACKAGES
    yield _libraries(), LIBRARIES


@cache
def packages() -> Path:
    """A copy of our packages, with each folder where it is when installed."""
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
    """The libraries of the environment that runs the tests; a copy if others cannot read them."""
    folder = Path(sysconfig.get_path("purelib"))
    if folder.stat().st_mode & 0o005 == 0o005:
        return folder
    copy = Path(tempfile.mkdtemp(prefix="platform-libraries-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    return _readable(Path(shutil.copytree(folder, copy, dirs_exist_ok=True)))


def _readable(folder: Path) -> Path:
    """Make it readable for the users of the services."""
    subprocess.run(["chmod", "--recursive", "u=rwX,go=rX", folder], check=True)
    return folder
