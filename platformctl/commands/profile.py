"""`platformctl profile`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from platform_common.cli.group import Text, print_error, print_json, warn
from platform_common.control_answers import InstalledProfile, to_json
from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platform_common.records.installed_profiles import profile
from platform_common.records.profiles import Profile
from platformctl import device
from platformctl.printing import as_json, print_facts, print_table, styled


@click.group()
def command() -> None:
    """Show and check the gateways that can run here."""


@command.command(
    "list",
    epilog="""\b
Examples:
  platformctl profile list
  platformctl profile list --json
""",
)
@as_json
@click.pass_context
def list_profiles(ctx: click.Context, *, as_json: bool) -> None:
    """List the installed profiles.

    If one cannot be used, stderr says why, and the exit code is 1.
    """
    listed = device.profile_list(ctx.obj)
    if as_json:
        print_json(to_json(listed.profiles))
    else:
        print_profiles(listed.profiles)
    for problem in listed.problems:
        warn(problem)
    ctx.exit(1 if listed.problems else 0)


@command.command(
    epilog="""\b
Examples:
  platformctl profile show khoj
  platformctl profile show khoj --json
"""
)
@click.argument("profile_id", metavar="ID", type=Text())
@as_json
@click.pass_obj
def show(paths: Paths, profile_id: str, *, as_json: bool) -> None:
    """Show one profile.

    Keys that its file leaves out have their default.
    """
    found = profile(paths, profile_id)
    if as_json:
        print_json(to_json(found))
    else:
        _print(found)


@command.command(
    epilog="""\b
Examples:
  platformctl profile validate
  platformctl profile validate khoj ./my-gateway.toml
"""
)
@click.argument("profiles", metavar="[ID|FILE]...", nargs=-1, type=Text())
@as_json
@click.pass_context
def validate(ctx: click.Context, profiles: tuple[str, ...], *, as_json: bool) -> None:
    """Check the definitions of profiles.

    Checks all installed ones, or the given ones. An argument with a slash or the ending
    .toml is a file, which should be called <id>.toml.
    """
    verdicts = device.check_profiles(ctx.obj, profiles)
    if as_json:
        print_json(to_json(verdicts))
    for verdict in verdicts:
        if verdict.error:
            print_error(PlatformError(verdict.error))
        elif not as_json:
            click.echo(f"{styled('good', 'green')}  {styled(verdict.file)}")
    ctx.exit(0 if all(verdict.ok for verdict in verdicts) else 1)


def print_profiles(profiles: Sequence[InstalledProfile]) -> None:
    """Print a table of profiles, with the active one marked."""
    print_table(
        ("PROFILE", "NAME", "VERSION", "STATE"),
        [
            (
                styled(profile.id, bold=profile.active),
                styled(profile.display_name),
                styled(profile.pinned_version),
                styled("active", "green") if profile.active else "",
            )
            for profile in profiles
        ],
    )


def _print(profile: Profile) -> None:
    facts = (
        ("Profile", profile.id),
        ("Name", profile.display_name),
        ("Version", profile.pinned_version),
        ("Memory", f"{profile.min_ram_mb:,} MB or more" if profile.min_ram_mb else ""),
        ("Unit", profile.unit),
        ("Ports", ", ".join(map(str, profile.ports))),
        ("Health", profile.http_check),
        ("Data", profile.data_dir),
        ("Chat", profile.chat.protocol),
        ("Channels", ", ".join(profile.channels)),
        *(
            (f"Ports of {channel}", ", ".join(ports))
            for channel, ports in profile.channel_ports.items()
        ),
    )
    print_facts([(label, styled(value or "-", dim=not value)) for label, value in facts])
