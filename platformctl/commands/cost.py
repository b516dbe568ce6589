"""`platformctl cost`."""

from __future__ import annotations

import click

from platform_common.cli.group import Number, print_json, warn
from platform_common.control_answers import to_json
from platform_common.errors import PlatformError, WrongUsageError
from platform_common.paths import Paths
from platformctl.cost import service, text
from platformctl.cost.caps import MOST_USD, OnTrip
from platformctl.cost.summary import Summary
from platformctl.cost.text import counted
from platformctl.printing import as_json, styled
from platformctl.prompts import agree, yes_option
from platformctl.root_helper.remote_operation import NOTHING

_ON_TRIP = ("pause", "warn", "nothing")


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  platformctl cost
  platformctl cost --json
  platformctl cost set --daily 2.50 --on-trip warn
""",
)
@as_json
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """Show what was spent, and how close that is to the caps.

    Days and months are in UTC. If a provider did not report a cost, the rate sheet
    estimates it.
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("Put --json after the name of the command.")
        return
    summary = service.SUMMARY(ctx.obj, NOTHING)
    if as_json:
        print_json(to_json(summary.cost))
    else:
        text.print_summary(summary)
    _warn_of(summary)


@command.command(
    "set",
    epilog="""\b
Examples:
  platformctl cost set --daily 5 --monthly 100
  platformctl cost set --daily 0
""",
)
@click.option(
    "--daily", type=Number(0, MOST_USD), metavar="USD", help="Cap for each day; 0 means no cap."
)
@click.option(
    "--monthly", type=Number(0, MOST_USD), metavar="USD", help="Cap for each month; 0 means no cap."
)
@click.option("--on-trip", type=click.Choice(_ON_TRIP), help="What to do when a cap is reached.")
@click.option(
    "--warn-at",
    type=click.IntRange(1, 100),
    metavar="PCT",
    help="Warn at this percentage of a cap.",
)
@click.pass_obj
def set_caps(
    paths: Paths,
    *,
    daily: float | None,
    monthly: float | None,
    on_trip: OnTrip | None,
    warn_at: int | None,
) -> None:
    """Change the caps.

    Everything else in cost.toml stays, including comments.
    """
    caps = service.NewCaps(daily, monthly, on_trip, warn_at)
    if not caps.changes:
        raise WrongUsageError(
            "There is nothing to set",
            hint="Give at least one of --daily, --monthly, --on-trip and --warn-at.",
        )
    text.print_caps(service.SET_CAPS(paths, caps))


@command.command(
    epilog="""\b
Examples:
  platformctl cost reset
  platformctl cost reset --yes
"""
)
@yes_option
@click.pass_obj
def reset(paths: Paths, *, yes: bool) -> None:
    """Start a new ledger, so that the cost starts at 0.

    The old one is kept in the same folder, with the time in its name.
    """
    agree("Rename the ledger, so that the cost starts at 0?", yes=yes)
    aside = service.RESET(paths, NOTHING).aside
    if aside:
        click.echo(f"The old ledger is now {styled(aside)}.")
    else:
        click.echo("There is no ledger; nothing was spent.")


@command.command(
    epilog="""\b
Examples:
  platformctl cost ledger
  platformctl cost ledger --lines 100 --json
"""
)
@click.option(
    "--lines",
    type=click.IntRange(1, service.MOST_LINES),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of messages.",
)
@as_json
@click.pass_obj
def ledger(paths: Paths, *, lines: int, as_json: bool) -> None:
    """Show the newest messages and what each cost."""
    found = service.NEWEST(paths, service.Newest(lines))
    if as_json:
        print_json(to_json(found))
    elif found.entries:
        text.print_ledger(found.entries)
    else:
        click.echo("There are no messages in the ledger.")
    if found.unreadable_lines:
        unreadable = counted(found.unreadable_lines, "line")
        warn(PlatformError(f"{unreadable} among these could not be read"))


def _warn_of(summary: Summary) -> None:
    if summary.unreadable:
        lines = counted(summary.unreadable, "line")
        warn(PlatformError(f"{summary.ledger}: {lines} could not be read and count as 0"))
    if summary.future:
        warn(
            PlatformError(
                f"{summary.ledger}: left out {counted(summary.future, 'line')} of a day that has"
                " not come",
                hint="Check the clock with: timedatectl",
            )
        )
