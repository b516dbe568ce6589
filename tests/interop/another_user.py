"""`python another_user.py UID ARGS`: run `platformctl ARGS` as that user.

What it needs is imported first: the user may not reach Python's folders.
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

# The standard library's that are imported when they are needed.
IMPORTED = (encodings.idna, getpass, resource, tomllib)

if __name__ == "__main__":
    for package in (platform_common, platformctl):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # A control CLI shows no pages.
            if not module.name.startswith("platform_common.web."):
                importlib.import_module(module.name)
    user = int(sys.argv.pop(1))
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    program()
