"""Asking before something is done that cannot be taken back, or that people must agree to."""

from __future__ import annotations

import sys

import click

from platform_common.errors import PlatformError, WrongUsageError
from platform_common.secret import Secret, parse_secret

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def at_terminal() -> bool:
    """Whether there is somebody to ask; a program may have been started without any input."""
    return bool(sys.stdin and sys.stdin.isatty())


def agree(question: str, *, yes: bool) -> None:
    """Ask on the terminal unless `yes`; raises `PlatformError` without a yes."""
    if yes:
        return
    if not at_terminal():
        raise WrongUsageError(
            "There is no terminal to ask on", hint="Give --yes if you agree to it."
        )
    if not click.confirm(question, err=True):
        raise PlatformError("Nothing was changed")


def ask_secret(name: str) -> Secret:
    """A secret, typed on the terminal, which does not show it; raises `SecretError`."""
    return parse_secret(click.prompt(name, hide_input=True, err=True))
