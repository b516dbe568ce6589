"""The command line `wizard-app`."""

from __future__ import annotations

import os

import click

from platform_common.command_line import CommandGroup, prepare
from platform_common.errors import PlatformError, WrongUsageError
from platform_common.leaving import run_and_leave
from platform_common.version import VERSION


class _Program(CommandGroup):
    """The group of all commands, with the exit codes of this program."""

    def exit_code(self, error: PlatformError) -> int:
        """2 for what was given wrongly, 1 for everything else."""
        return 2 if isinstance(error, WrongUsageError) else 1


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="wizard-app")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Set up this device in a browser.

    \b
    Exit codes:
      0  done
      1  it failed
      2  wrong usage
    """  # noqa: D301 - \b keeps the lines apart, for click
    prepare(ctx)


@main.command(
    epilog="""\b
Examples:
  wizard-app serve
"""
)
@click.option(
    "--bind",
    default="127.0.0.1:8088",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; [IPV6]:PORT and unix:/PATH are addresses too.",
)
def serve(bind: str) -> None:
    """Serve the wizard until it is told to end."""
    from platform_common.web.server import serve as serve_app
    from wizard_app.app import create_app
    from wizard_app.settings import WizardSettings

    serve_app(create_app(WizardSettings.from_env(os.environ)), bind)


def program() -> None:
    """The program `wizard-app`."""
    run_and_leave(main)
