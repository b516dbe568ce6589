"""The cost operations: the ledger is in the home of agent, and the caps belong to root."""

from __future__ import annotations

from msgspec import Struct

from platform_common.paths import COST_CAPS, COST_DEFAULTS, COST_LEDGER_VARIABLE, PROFILES, Place
from platformctl.answers import Ledger
from platformctl.cost.caps import MOST_USD, Changes, CostCaps, OnTrip
from platformctl.cost.summary import Summary, newest, reset, set_caps, summary
from platformctl.root_helper.remote_operation import Nothing, RemoteOperation

MOST_LINES = 10_000
# Enough for `MOST_LINES` messages with model names of any allowed length.
_LEDGER_LIMIT_BYTES = 16 << 20
_PLACES = (COST_CAPS, COST_DEFAULTS, PROFILES, Place("", COST_LEDGER_VARIABLE))


class Newest(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of messages to show."""

    lines: int

    def __post_init__(self) -> None:
        """Refuse a number that is out of range."""
        if not 1 <= self.lines <= MOST_LINES:
            raise ValueError(f"lines: must be 1 to {MOST_LINES:,}")


class NewCaps(Struct, frozen=True, forbid_unknown_fields=True):
    """New values of the caps; None for those that stay."""

    daily_usd: float | None = None
    monthly_usd: float | None = None
    on_cap_trip: OnTrip | None = None
    warn_at_pct: int | None = None

    def __post_init__(self) -> None:
        """Refuse the values that the command line refuses."""
        for name, most in (("daily_usd", MOST_USD), ("monthly_usd", MOST_USD)):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= most:
                raise ValueError(f"{name}: must be 0 to {most:,.0f}")
        if self.warn_at_pct is not None and not 1 <= self.warn_at_pct <= 100:
            raise ValueError("warn_at_pct: must be 1 to 100")

    @property
    def changes(self) -> Changes:
        """The new values by section and key of the record."""
        given = {
            ("caps", "daily_usd"): self.daily_usd,
            ("caps", "monthly_usd"): self.monthly_usd,
            ("behaviour", "on_cap_trip"): self.on_cap_trip,
            ("behaviour", "warn_at_pct"): self.warn_at_pct,
        }
        return {name: value for name, value in given.items() if value is not None}


class Reset(Struct, frozen=True):
    """The new path of the old ledger; empty if there was none."""

    aside: str = ""


SUMMARY = RemoteOperation(
    "cost", Nothing, Summary, lambda paths, *_: summary(paths), places=_PLACES
)
NEWEST = RemoteOperation(
    "cost-ledger",
    Newest,
    Ledger,
    lambda paths, wanted, _: newest(paths, wanted.lines),
    places=_PLACES,
    answer_limit_bytes=_LEDGER_LIMIT_BYTES,
)
SET_CAPS = RemoteOperation(
    "cost-set",
    NewCaps,
    CostCaps,
    lambda paths, caps, _: set_caps(paths, caps.changes),
    changes=True,
    places=(COST_CAPS,),
)
RESET = RemoteOperation(
    "cost-reset",
    Nothing,
    Reset,
    lambda paths, *_: Reset(str(reset(paths) or "")),
    changes=True,
    places=_PLACES,
)
