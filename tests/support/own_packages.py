"""Our packages and their libraries, for machines: wherever this checkout lies, services see them.

A service sees neither the homes of users nor the temporary files of others.
"""

from __future__ import annotations

import atexit
import configparser
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dev.distributions import ROOT

PACKAGES, LIBRARIES = "/opt/packages", "/opt/libraries"


def shared_folders() -> Iterator[tuple[Path, str]]:
    """The folders that a machine is to have, and where."""
    yield _packages(), PACKAGES
    yield Path(sysconfig.get_path("purelib")), LIBRARIES


@cache
def _packages() -> Path:
    """A copy of our packages, each folder in the place that it has once it is installed."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", "utf-8")
    names = settings["options"]["packages"].split()
    mapped = dict(
        line.split(" = ") for line in settings["options"]["package_dir"].strip().splitlines()
    )
    folder = Path(tempfile.mkdtemp(prefix="platform-packages-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # The users of the services read it, too.
    folder.chmod(0o755)
    for name in names:
        if "." not in name or name in mapped:
            source = ROOT / mapped.get(name, name)
            shutil.copytree(source, folder / name.replace(".", "/"), dirs_exist_ok=True)
    return folder
