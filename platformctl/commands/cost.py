"""`platformctl cost`."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import click

from platform_common.command_line import print_json, warn
from platform_common.errors import PlatformError, WrongUsageError
from platform_common.paths import Paths
from platform_common.records.cost_caps import MOST_USD, OnTrip
from platform_common.views import LedgerEntry, to_json
from platformctl import costs
from platformctl.asking import agree, yes_option
from platformctl.printing import as_json, print_facts, print_table, styled

if TYPE_CHECKING:
    from platform_common.records.cost_ledger import Spent
    from platform_common.views import Cost

_COLOURS = {"ok": "green", "warn": "yellow", "tripped": "red"}
_ON_TRIP = ("pause", "warn", "nothing")
_BAR_WIDTH = 20
_HEIGHTS = "▁▂▃▄▅▆▇█"


class _Amount(click.FloatRange):
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        usd: float = super().convert(value, param, ctx)
        # Not a number is inside every range.
        if math.isnan(usd):
            self.fail(f"{value!r} is not an amount.", param, ctx)
        return usd


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

    Days and months are those of UTC. What a provider did not tell the price of
    is estimated by the rate sheet.
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("Put --json behind the name of the command.")
        return
    summary = costs.summary(ctx.obj)
    if as_json:
        print_json(to_json(summary.cost))
    else:
        _print(summary)
    _warn_of(summary.spent, str(summary.ledger))


@command.command(
    "set",
    epilog="""\b
Examples:
  platformctl cost set --daily 5 --monthly 100
  platformctl cost set --daily 0
""",
)
@click.option(
    "--daily", type=_Amount(0, MOST_USD), metavar="USD", help="The most for a day; 0 is no cap."
)
@click.option(
    "--monthly", type=_Amount(0, MOST_USD), metavar="USD", help="The most for a month; 0 is no cap."
)
@click.option("--on-trip", type=click.Choice(_ON_TRIP), help="What happens when a cap is reached.")
@click.option(
    "--warn-at",
    type=click.IntRange(1, 100),
    metavar="PCT",
    help="The part of a cap, in per cent, at which there is a warning.",
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
    """Change the caps; what is not given stays, comments too."""
    given = {
        ("caps", "daily_usd"): daily,
        ("caps", "monthly_usd"): monthly,
        ("behaviour", "on_cap_trip"): on_trip,
        ("behaviour", "warn_at_pct"): warn_at,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise WrongUsageError(
            "There is nothing to set",
            hint="Give at least one of --daily, --monthly, --on-trip and --warn-at.",
        )
    caps = costs.set_caps(paths, changes)
    print_facts(
        (
            ("Daily cap", _cap(caps.caps.daily_usd)),
            ("Monthly cap", _cap(caps.caps.monthly_usd)),
            ("At a cap", styled(caps.behaviour.on_cap_trip)),
            ("Warning at", styled(f"{caps.behaviour.warn_at_pct:g} %")),
        )
    )


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
    """Begin a new ledger, so that nothing counts as spent.

    The old one is put aside under a name that says when, in the same folder.
    """
    agree("Put the ledger aside, so that nothing counts as spent?", yes=yes)
    aside = costs.reset(paths)
    if aside is None:
        click.echo("There is no ledger; nothing was spent.")
    else:
        click.echo(f"The old ledger is {styled(str(aside))} now.")


@command.command(
    epilog="""\b
Examples:
  platformctl cost ledger
  platformctl cost ledger --lines 100 --json
"""
)
@click.option(
    "--lines",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many messages.",
)
@as_json
@click.pass_obj
def ledger(paths: Paths, *, lines: int, as_json: bool) -> None:
    """Show the newest messages and what each cost."""
    found = costs.newest(paths, lines)
    if as_json:
        print_json(to_json(found))
    elif found.entries:
        head = ("Time (UTC)", "Provider", "Model", "Tokens in", "Tokens out", "Cost", "Note")
        print_table(head, [_row(entry) for entry in found.entries])
    else:
        click.echo("There is no message in the ledger.")
    if found.unreadable_lines:
        warn(PlatformError(f"Could not read {_lines(found.unreadable_lines)} among these"))


def _print(summary: costs.Summary) -> None:
    cost = summary.cost
    windows = (
        ("Today", cost.today_usd, cost.daily_cap_usd, cost.daily_pct, cost.daily_state),
        ("This month", cost.month_usd, cost.monthly_cap_usd, cost.monthly_pct, cost.monthly_state),
    )
    facts = [
        (label, _window(usd, cap, pct, _COLOURS[state], state))
        for label, usd, cap, pct, state in windows
    ]
    facts.append(("At a cap", styled(summary.caps.behaviour.on_cap_trip)))
    if (drawn := _by_day(cost)) is not None:
        facts.append((f"{len(cost.days)} days", drawn))
    if cost.unknown_messages:
        facts.append(("No price for", styled(_messages(cost.unknown_messages), "yellow")))
    print_facts(facts)
    if cost.recent_expensive:
        click.echo()
        print_table(
            ("Time (UTC)", "Provider", "Model", "Cost"),
            [
                (_time(one.timestamp), styled(one.provider), styled(one.model), _usd(one.cost_usd))
                for one in cost.recent_expensive
            ],
        )


def _window(usd: float, cap: float, pct: float, colour: str, state: str) -> str:
    if cap <= 0:
        return f"{_usd(usd)}  {styled('no cap', dim=True)}"
    share = f"{_usd(usd)} of {_usd(cap)}"
    return f"{share:<20}  {_bar(pct, colour)}  {styled(f'{pct:.0f} %')}  {styled(state, colour)}"


def _bar(pct: float, colour: str) -> str:
    full = min(int(pct * _BAR_WIDTH / 100), _BAR_WIDTH)
    on, off = ("█", "░") if _draws() else ("#", ".")
    return styled(on * full, colour) + styled(off * (_BAR_WIDTH - full), dim=True)


def _by_day(cost: Cost) -> str | None:
    """A line with a bar for each day; None where there is nothing, or nothing to draw with."""
    most = max(day.usd for day in cost.days)
    if not most or not _draws():
        return None
    heights = "".join(
        _HEIGHTS[math.ceil(day.usd / most * (len(_HEIGHTS) - 1))] for day in cost.days
    )
    return f"{styled(heights, 'cyan')}  {styled(f'up to {_usd(most)}', dim=True)}"


def _draws() -> bool:
    return sys.stdout.encoding.lower().startswith("utf")


def _row(entry: LedgerEntry) -> tuple[str, ...]:
    return (
        _time(entry.timestamp),
        styled(entry.provider),
        styled(entry.model),
        f"{entry.input_tokens:,}".rjust(len("Tokens in")),
        f"{entry.output_tokens:,}".rjust(len("Tokens out")),
        styled("-", dim=True) if entry.cost_unknown else _usd(entry.cost_usd),
        "unknown" if entry.cost_unknown else "estimated" if entry.estimated else "",
    )


def _time(timestamp: str) -> str:
    return styled(timestamp[:19].replace("T", " "))


def _usd(usd: float) -> str:
    if usd >= 1 or usd == round(usd, 2):
        return f"${usd:,.2f}"
    return f"${usd:.4f}" if usd >= 0.0001 else "<$0.0001"


def _cap(usd: float) -> str:
    return _usd(usd) if usd > 0 else styled("none", dim=True)


def _messages(count: int) -> str:
    return f"{count:,} message{'s' if count != 1 else ''}"


def _lines(count: int) -> str:
    return f"{count:,} line{'s' if count != 1 else ''}"


def _warn_of(spent: Spent, ledger: str) -> None:
    if spent.unreadable:
        lines = _lines(spent.unreadable)
        warn(PlatformError(f"{ledger}: could not read {lines}, which the sums leave out"))
    if spent.future:
        warn(
            PlatformError(
                f"{ledger}: left out {_lines(spent.future)} of a day that has not come",
                hint="See whether the clock is right with `timedatectl`.",
            )
        )
