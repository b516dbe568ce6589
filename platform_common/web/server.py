"""Serving an app: this process becomes gunicorn, with the settings of `gunicorn_conf`."""

from __future__ import annotations

import os
import re
import sys
from typing import NoReturn

from platform_common.errors import UnreadableError, WrongUsageError

_BIND = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})|unix:/\S+|fd://[0-9]+")


def check_bind(bind: str) -> None:
    """Raise `WrongUsageError` for what is no address to listen on."""
    found = _BIND.fullmatch(bind)
    if not found or (found[1] and int(found[1]) >= 1 << 16):
        raise WrongUsageError(
            f"{bind!a} is no address to listen on", hint="Give HOST:PORT, such as 127.0.0.1:8089."
        )


def become_gunicorn(app: str, bind: str) -> NoReturn:
    """Serve `app` (module:attribute) on `bind`; this program does not come back."""
    check_bind(bind)
    argv = [
        *(sys.executable, "-m", "gunicorn", "--config"),
        *("python:platform_common.web.gunicorn_conf", "--bind", bind, app),
    ]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(argv[0], argv)  # noqa: S606 - a list of arguments, and no shell
    except OSError as error:
        raise UnreadableError.of(argv[0], error) from error
