"""The command line `platformctl`: its commands, and the exit codes of errors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

import click

from platform_common.cli.group import CommandGroup, prepare, run_and_leave, warn
from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platform_common.version import VERSION


class _Group(CommandGroup):
    usage_exit_code = 64
    modules: ClassVar[Mapping[str, str]] = {
        "status": "platformctl.commands.status",
        "version": "platformctl.commands.version",
        "limits": "platformctl.commands.limits",
        "cost": "platformctl.commands.cost",
        "doctor": "platformctl.commands.doctor",
        "model": "platformctl.commands.model",
        "profile": "platformctl.commands.profile",
        "voice": "platformctl.commands.voice",
        "setup": "platformctl.commands.setup",
        "services": "platformctl.commands.services",
        "tunnel": "platformctl.commands.tunnel",
        "control-helper": "platformctl.commands.control_helper",
    }


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="platformctl")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Show the state of this device, and change its settings.

    \b
    Exit codes:
      0   success
      1   failure, or a failed check
      64  wrong usage
    """  # noqa: D301 - \b keeps the lines apart, for click
    prepare(ctx)
    ctx.obj = paths = Paths.from_env(os.environ)
    if not paths.root.is_dir():
        warn(PlatformError(f"PLATFORM_ROOT is {paths.root}, but there is no such folder"))


def program() -> None:
    """Run the program `platformctl`."""
    run_and_leave(main)
