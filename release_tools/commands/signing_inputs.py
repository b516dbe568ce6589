"""The key, password and timestamp for commands that sign."""

from __future__ import annotations

import os
import sys
import time

import click

from release_tools.signing.keys import take_secret_key
from release_tools.signing.secret_key import SecretKey


def ask_password(*, confirm: bool = False) -> str:
    """Ask for the password of a secret key; raises `UsageError` without a terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            "There is no terminal to ask for the password of the secret key;"
            " set SIGNING_SECRET_KEY_PASSWORD" + (" or use --no-password." if confirm else ".")
        )
    password: str = click.prompt(
        "Password of the secret key", hide_input=True, confirmation_prompt=confirm, err=True
    )
    return password


def signing_key() -> SecretKey | None:
    """Take the key out of the environment, which has it in `SIGNING_SECRET_KEY`, if any."""
    return take_secret_key(os.environ, ask_password)


def timestamp() -> int:
    """Return `SOURCE_DATE_EPOCH`, else the current time, in Unix seconds."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return int(time.time())
    # The limit is the end of the year 9999, the last that RFC 3339 can express.
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and int(text) < 253402300800):
        raise click.UsageError("SOURCE_DATE_EPOCH must be a number of seconds since 1970.")
    return int(text)
