"""`platformctl version`."""

from __future__ import annotations

import click

from platform_common.cli.group import print_json, warn
from platform_common.control_answers import Version, to_json
from platform_common.paths import Paths
from platformctl import device
from platformctl.printing import as_json, print_facts, styled


@click.command(
    epilog="""\b
Examples:
  platformctl version
  platformctl version --json
"""
)
@as_json
@click.pass_obj
def command(paths: Paths, *, as_json: bool) -> None:
    """Show the installed versions.

    If a record cannot be used, its member is empty and stderr says why.
    """
    view, problems = device.version(paths)
    if as_json:
        print_json(to_json(view))
    else:
        _print(view)
    for problem in problems:
        warn(problem)


def _print(view: Version) -> None:
    # Loading it takes 10 ms; the bench row "platformctl version --json" would miss.
    from platformctl.commands.profile import print_profiles

    facts = (
        ("Release", view.release_version),
        ("Channel", view.channel),
        ("Target", view.target),
        ("Kernel", view.kernel),
        ("Control CLI", view.binary_version),
    )
    print_facts([(label, styled(value or "-", dim=not value)) for label, value in facts])
    click.echo()
    print_profiles(view.profiles)
