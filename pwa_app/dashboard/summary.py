"""Turns the five answers into figures, checks and a verdict for the start page.

Members that an answer does not have are None, never 0.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from platform_common.message import Sentence
from platform_common.records.channel_names import channel_name
from pwa_app.dashboard.dashboard_figures import Health, Spending, counted, health_of, spending
from pwa_app.dashboard.headline import Headline, headline_of
from pwa_app.overview import Overview, State, gateway_state, state_of


class Summary(Struct, frozen=True):
    """Everything that the page shows beside the answers themselves."""

    gateway: State
    tunnel: State
    uptime_s: int | None
    last_fails: int | None
    channels: tuple[Sentence, ...]
    spending: Spending
    health: Health
    headline: Headline


def summary(overview: Overview) -> Summary:
    """Summarise the answers."""
    status = overview.status.value
    gateway = gateway_state(status)
    uptime = status.uptime_seconds
    money = spending(overview.cost)
    if status.cost_tripped and not money.tripped:
        money = replace(money, tripped=True)
    health = health_of(overview.doctor)
    return Summary(
        gateway=gateway,
        tunnel=state_of(status.tunnel.active_state),
        uptime_s=uptime if uptime is not None and uptime >= 0 else None,
        last_fails=counted(status.doctor_fails),
        channels=tuple(channel_name(channel) for channel in status.channels),
        spending=money,
        health=health,
        headline=headline_of(overview, gateway, money, health),
    )
