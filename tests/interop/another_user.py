"""`python another_user.py UID ARGS`: run `platformctl ARGS` as that user.

Everything is imported first, because the user may have no access to Python's folders.
"""

from __future__ import annotations

import encodings.idna
import getpass
import importlib
import os
import pkgutil
import resource
import sys
import tomllib

import platform_common
import platformctl
from platformctl.cli import program

# Modules of the standard library that are otherwise imported on demand.
IMPORTED = (encodings.idna, getpass, resource, tomllib)

if __name__ == "__main__":
    for package in (platform_common, platformctl):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # The control CLI needs no pages.
            if not module.name.startswith("platform_common.web."):
                importlib.import_module(module.name)
    user = int(sys.argv.pop(1))
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    program()
