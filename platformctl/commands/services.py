"""`platformctl services`: the units of this device."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from platform_common.cli.group import print_json
from platform_common.control_answers import to_json
from platform_common.paths import Paths
from platformctl.printing import as_json, print_table, styled
from platformctl.services import checks as service_checks
from platformctl.services import install as services

_COLOURS = {"active": "green", "failed": "red"}
_root = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the device, such as a mounted image.",
)
_below = click.option(
    "--below",
    type=click.Path(path_type=Path),
    default=services.LOCAL,
    show_default=True,
    help="Folder of the units; packages use usr/lib.",
)


@click.group()
def command() -> None:
    """Install, list and remove the services of this device."""


@command.command(
    epilog="""\b
Examples:
  sudo platformctl services install
  sudo platformctl services install --root /mnt --programs /usr/bin
"""
)
@_root
@click.option(
    "--programs",
    type=click.Path(path_type=Path),
    help="Folder of the programs on the device; by default the folder of this program.",
)
@_below
@click.option("--files-only", is_flag=True, help="Only write the files; enable and start nothing.")
@as_json
@click.pass_obj
def install(
    paths: Paths,
    root: Path | None,
    programs: Path | None,
    below: Path,
    *,
    files_only: bool,
    as_json: bool,
) -> None:
    """Install units, users and folders, and start them.

    Existing files are replaced. After an upgrade the dashboard restarts, and what you
    disabled stays disabled. On this machine the services start at once; in another
    folder they start at its boot.
    """
    root = (root or paths.root).absolute()
    programs = programs or service_checks.own_programs(Path(sys.argv[0]))
    if files_only:
        service_checks.check_name(programs)
    else:
        service_checks.check_system(root, below)
        service_checks.check_programs(root, programs)
    known = services.known_units(root, below)
    installed = services.install(root, programs, below)
    enabled = () if files_only else services.enable_units(root, known)
    if as_json:
        print_json(to_json(services.ServicesInstall(tuple(map(str, installed)), enabled)))
        return
    for path in installed:
        click.echo(f"Installed {styled(str(path))}")
    for unit in enabled:
        click.echo(f"Enabled {styled(unit)}")


@command.command(
    epilog="""\b
Examples:
  sudo platformctl services remove
  sudo platformctl services remove --root /mnt
"""
)
@_root
@_below
@as_json
@click.pass_obj
def remove(paths: Paths, root: Path | None, below: Path, *, as_json: bool) -> None:
    """Stop the services and remove them.

    Users, folders, settings and keys stay, and the firewall rules stay until the next
    boot.
    """
    root = (root or paths.root).absolute()
    if services.known_units(root, below):
        service_checks.check_system(root, below)
    removed = services.remove(root, below)
    if as_json:
        print_json(to_json(services.ServicesRemove(tuple(map(str, removed)))))
        return
    for path in removed:
        click.echo(f"Removed {styled(str(path))}")
    if not removed:
        click.echo(f"There are no files of ours below {styled(str(root / below))}.")


@command.command(
    name="list",
    epilog="""\b
Examples:
  platformctl services list
  platformctl services list --json
""",
)
@as_json
def list_(*, as_json: bool) -> None:
    """Show our units and their states."""
    found = services.states()
    if as_json:
        print_json(to_json(found))
        return
    print_table(
        ("UNIT", "STATE", "AT BOOT"),
        [
            (
                styled(one.unit, bold=True),
                styled(one.active_state, _COLOURS.get(one.active_state, "")),
                "yes" if one.enabled else "no",
            )
            for one in found
        ],
    )
