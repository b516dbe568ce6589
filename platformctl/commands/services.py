"""`platformctl services`: the units of this device."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from platformctl import services
from platformctl.printing import styled


@click.group()
def command() -> None:
    """Put the services of this device in their places."""


@command.command(
    epilog="""\b
Examples:
  sudo platformctl services install
  platformctl services install --root IMAGE --programs /usr/bin
"""
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default="/",
    help="Folder that is to be the device, such as a mounted image.",
)
@click.option(
    "--programs",
    type=click.Path(path_type=Path),
    help="Folder of the programs on the device; by default that of this one.",
)
@click.option(
    "--below",
    type=click.Path(path_type=Path),
    default=services.LOCAL,
    show_default=True,
    help="Folder of the units; usr/lib is for packages.",
)
@click.option("--files-only", is_flag=True, help="Switch nothing on.")
def install(root: Path, programs: Path | None, below: Path, *, files_only: bool) -> None:
    """Install units, users and folders, and have systemd start them.

    Whatever is there is replaced, and may be installed again. On this machine they are
    started at once; in another folder they start when it is booted.
    """
    programs = programs or Path(sys.argv[0]).absolute().parent
    for path in services.install(root, programs, below):
        click.echo(f"Installed {styled(str(path))}")
    if not files_only:
        services.switch_on(root)
