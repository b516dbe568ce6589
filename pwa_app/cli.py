"""The command line `pwa-app`."""

from __future__ import annotations

import click

from platform_common.command_line import CommandGroup, prepare
from platform_common.leaving import run_and_leave
from platform_common.version import VERSION


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="pwa-app")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Serve the dashboard of this device.

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
  pwa-app serve
  pwa-app serve --bind 0.0.0.0:8089
"""
)
@click.option(
    "--bind",
    default="127.0.0.1:8089",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on.",
)
def serve(bind: str) -> None:
    """Serve the dashboard until it is told to end.

    This program becomes gunicorn, with one process and more threads than
    connections. Settings come from the environment; docs/pwa-app.md lists them.
    """
    from platform_common.web.server import become_gunicorn

    become_gunicorn("pwa_app.wsgi:app", bind)


def program() -> None:
    """The program `pwa-app`."""
    run_and_leave(main)
