"""`release-tools compare`."""

from __future__ import annotations

import click

from platform_common.cli.group import print_json
from release_tools.commands.options import AS_JSON
from release_tools.manifest import calver


@click.command(
    epilog="""\b
Example:
  release-tools compare 2026.11.1-rc1 2026.11.1
"""
)
@click.argument("a")
@click.argument("b")
@AS_JSON
def command(a: str, b: str, as_json: bool) -> None:
    """Show which of the versions A and B is newer."""
    order = calver.compare(calver.CalVer.parse(a), calver.CalVer.parse(b))
    if as_json:
        print_json({"order": order})
        return
    click.echo(f"{a} {'=><'[order]} {b}")
