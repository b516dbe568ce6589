"""The command line `pwa-app`."""

from __future__ import annotations

import os

import click

from platform_common import ports
from platform_common.cli.group import CommandGroup, prepare, run_and_leave
from platform_common.errors import PlatformError
from platform_common.version import VERSION


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="pwa-app")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Serve the dashboard of this device.

    \b
    Exit codes:
      0  success
      1  failure
      2  wrong usage
    """  # noqa: D301 - \b keeps the lines apart, for click
    prepare(ctx)


@main.command(
    epilog="""\b
Examples:
  pwa-app serve
  pwa-app serve --bind 0.0.0.0:8089
  pwa-app serve --bind unix:/run/platform/pwa.sock
"""
)
@click.option(
    "--bind",
    default=f"127.0.0.1:{ports.DASHBOARD}",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; [IPV6]:PORT and unix:/PATH are addresses too.",
)
def serve(bind: str) -> None:
    """Serve the dashboard until it is stopped.

    Runs gunicorn with one process and many threads. The settings are environment
    variables, which docs/reference/pwa-app.md lists.
    """
    try:
        from platform_common.web.serving.server import serve as serve_app
        from pwa_app.app import create_app
        from pwa_app.settings import PwaSettings
    except ModuleNotFoundError as error:
        raise PlatformError(
            f"The package {error.name} is not installed",
            hint="Install it with: pip install 'platform-appliance[web,push]'",
        ) from error
    serve_app(create_app(PwaSettings.from_env(os.environ)), bind)


def program() -> None:
    """Run the program `pwa-app`."""
    run_and_leave(main)
