"""Prompts before actions that cannot be undone or that need consent."""

from __future__ import annotations

import sys

import click

from platform_common.errors import PlatformError, WrongUsageError
from platform_common.secret import Secret, parse_secret

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def at_terminal() -> bool:
    """Whether standard input is a terminal; it may be closed."""
    return bool(sys.stdin and sys.stdin.isatty())


def agree(question: str, *, yes: bool) -> None:
    """Ask on the terminal unless `yes`; raises `PlatformError` if the answer is not yes."""
    if yes:
        return
    if not at_terminal():
        raise WrongUsageError("There is no terminal to ask on", hint="To agree, add --yes.")
    if not click.confirm(question, err=True):
        raise PlatformError("Nothing was changed")


def ask_secret(name: str) -> Secret:
    """Ask for a secret on the terminal without showing it; raises `SecretError`."""
    return parse_secret(click.prompt(name, hide_input=True, err=True))
