"""The cost as text and bars, for people."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import click

from platform_common.control_answers import Cost
from platformctl.answers import LedgerEntry
from platformctl.cost.caps import CostCaps
from platformctl.cost.summary import Summary
from platformctl.printing import print_facts, print_table, styled

_COLOURS = {"ok": "green", "warn": "yellow", "tripped": "red"}
_BAR_WIDTH = 20
_HEIGHTS = "▁▂▃▄▅▆▇█"


def print_summary(summary: Summary) -> None:
    """Print the answer to `cost`."""
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
        facts.append(("No price for", styled(counted(cost.unknown_messages, "message"), "yellow")))
    print_facts(facts)
    if cost.recent_expensive:
        click.echo()
        print_table(
            ("TIME (UTC)", "PROVIDER", "MODEL", "COST"),
            [
                (_time(one.timestamp), styled(one.provider), styled(one.model), _usd(one.cost_usd))
                for one in cost.recent_expensive
            ],
        )


def print_ledger(entries: Sequence[LedgerEntry]) -> None:
    """Print the answer to `cost ledger`."""
    head = ("TIME (UTC)", "PROVIDER", "MODEL", "TOKENS IN", "TOKENS OUT", "COST", "NOTE")
    print_table(head, [_row(entry) for entry in entries])


def print_caps(caps: CostCaps) -> None:
    """Print the caps after `cost set`."""
    print_facts(
        (
            ("Daily cap", _cap(caps.caps.daily_usd)),
            ("Monthly cap", _cap(caps.caps.monthly_usd)),
            ("At a cap", styled(caps.behaviour.on_cap_trip)),
            ("Warning at", styled(f"{caps.behaviour.warn_at_pct:g} %")),
        )
    )


def counted(count: int, thing: str) -> str:
    """Such as `1 line` or `2,000 lines`."""
    return f"{count:,} {thing}{'s' if count != 1 else ''}"


def _cap(usd: float) -> str:
    return _usd(usd) if usd > 0 else styled("none", dim=True)


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
    """A line with a bar for each day; None without costs, or if the terminal cannot show bars."""
    most = max((day.usd for day in cost.days), default=0)
    if not most or not _draws():
        return None
    heights = "".join(
        _HEIGHTS[math.ceil(day.usd / most * (len(_HEIGHTS) - 1))] for day in cost.days
    )
    return f"{styled(heights, 'cyan')}  {styled(f'up to {_usd(most)}', dim=True)}"


def _draws() -> bool:
    return bool(sys.stdout) and sys.stdout.encoding.lower().startswith("utf")


def _time(timestamp: str) -> str:
    return styled(timestamp[:19].replace("T", " "))


def _usd(usd: float) -> str:
    if usd >= 1 or usd == round(usd, 2):
        return f"${usd:,.2f}"
    return f"${usd:.4f}" if usd >= 0.0001 else "<$0.0001"


def _row(entry: LedgerEntry) -> tuple[str, ...]:
    return (
        _time(entry.timestamp),
        styled(entry.provider),
        styled(entry.model),
        f"{entry.input_tokens:,}".rjust(len("TOKENS IN")),
        f"{entry.output_tokens:,}".rjust(len("TOKENS OUT")),
        styled("-", dim=True) if entry.cost_unknown else _usd(entry.cost_usd),
        "unknown" if entry.cost_unknown else "estimated" if entry.estimated else "",
    )
