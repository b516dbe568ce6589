"""Asking before something is done that cannot be taken back, or that people must agree to."""

from __future__ import annotations

import sys

import click

from platform_common.errors import PlatformError, WrongUsageError

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def agree(question: str, *, yes: bool) -> None:
    """Ask on the terminal unless `yes`; raises `PlatformError` without a yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise WrongUsageError(
            "There is no terminal to ask on", hint="Give --yes if you agree to it."
        )
    if not click.confirm(question, err=True):
        raise PlatformError("Nothing was changed")
