"""What was spent, for whoever asks: the ledger is in the home of agent, the caps are root's.

Who is not root has the root helper look and change, where there is one.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from platform_common.paths import (
    COST_CAPS,
    COST_DEFAULTS,
    COST_LEDGER_VARIABLE,
    PROFILES,
    Paths,
    Place,
)
from platform_common.root_helper import client as control_helper
from platformctl.answers import Ledger
from platformctl.cost import summary as costs
from platformctl.cost.caps import MOST_USD, Changes, CostCaps, OnTrip
from platformctl.cost.summary import Summary

MOST_LINES = 10_000
# Of so many messages, each with a name of a model that somebody else chose.
_LEDGER_LIMIT_BYTES = 16 << 20
_LEDGER = Place("", COST_LEDGER_VARIABLE)


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No arguments."""


class Newest(Struct, frozen=True, forbid_unknown_fields=True):
    """How many messages of the ledger are asked for."""

    lines: int

    def __post_init__(self) -> None:
        """Refuse more than anybody looks at."""
        if not 1 <= self.lines <= MOST_LINES:
            raise ValueError(f"lines: must be 1 to {MOST_LINES:,}")


class NewCaps(Struct, frozen=True, forbid_unknown_fields=True):
    """The values of the caps that become others; None for what stays."""

    daily_usd: float | None = None
    monthly_usd: float | None = None
    on_cap_trip: OnTrip | None = None
    warn_at_pct: int | None = None

    def __post_init__(self) -> None:
        """Refuse what the command line would not take."""
        for name, most in (("daily_usd", MOST_USD), ("monthly_usd", MOST_USD)):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                raise ValueError(f"{name}: must be 0 to {most:,.0f}")
        if self.warn_at_pct is not None and not 1 <= self.warn_at_pct <= 100:
            raise ValueError("warn_at_pct: must be 1 to 100")

    @property
    def changes(self) -> Changes:
        """The same as the record takes it."""
        given = {
            ("caps", "daily_usd"): self.daily_usd,
            ("caps", "monthly_usd"): self.monthly_usd,
            ("behaviour", "on_cap_trip"): self.on_cap_trip,
            ("behaviour", "warn_at_pct"): self.warn_at_pct,
        }
        return {name: value for name, value in given.items() if value is not None}


class Reset(Struct, frozen=True):
    """Where the old ledger is now; empty when there was none."""

    aside: str = ""


def summary(paths: Paths) -> Summary:
    """What was spent until now; raises `PlatformError`."""
    socket = _helper(paths)
    if socket is not None:
        return control_helper.ask(socket, "cost", {}, Summary)
    return costs.summary(paths)


def tripped(paths: Paths) -> bool:
    """Whether a cap is reached; raises `PlatformError`."""
    return summary(paths).cost.tripped


def newest(paths: Paths, count: int) -> Ledger:
    """The last `count` messages of the ledger; raises `PlatformError`."""
    socket = _helper(paths)
    if socket is not None:
        asked, limit = {"lines": count}, _LEDGER_LIMIT_BYTES
        return control_helper.ask(socket, "cost-ledger", asked, Ledger, limit_bytes=limit)
    return costs.newest(paths, count)


def set_caps(paths: Paths, caps: NewCaps) -> CostCaps:
    """Change those values of the caps, and return what holds now; raises `PlatformError`."""
    socket = control_helper.socket_for(paths, COST_CAPS)
    if socket is not None:
        given = {name: getattr(caps, name) for name in caps.__struct_fields__}
        return control_helper.ask(socket, "cost-set", given, CostCaps)
    return costs.set_caps(paths, caps.changes)


def reset(paths: Paths) -> Path | None:
    """Put the ledger aside; where it is now, or None if there was none; raises `PlatformError`."""
    socket = _helper(paths)
    if socket is not None:
        aside = control_helper.ask(socket, "cost-reset", {}, Reset).aside
        return Path(aside) if aside else None
    return costs.reset(paths)


def summary_asked(paths: Paths, _: Nothing) -> Summary:
    """The helper's operation `cost`."""
    return costs.summary(paths)


def newest_asked(paths: Paths, asked: Newest) -> Ledger:
    """The helper's operation `cost-ledger`."""
    return costs.newest(paths, asked.lines)


def set_asked(paths: Paths, asked: NewCaps) -> CostCaps:
    """The helper's operation `cost-set`."""
    return costs.set_caps(paths, asked.changes)


def reset_asked(paths: Paths, _: Nothing) -> Reset:
    """The helper's operation `cost-reset`."""
    return Reset(str(costs.reset(paths) or ""))


def _helper(paths: Paths) -> Path | None:
    return control_helper.socket_for(paths, COST_CAPS, COST_DEFAULTS, PROFILES, _LEDGER)
