"""What the messages may cost, and what happens when they cost more: `/etc/platform/cost.toml`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from platform_common.formats.decode import from_toml

OnTrip = Literal["pause", "warn", "nothing"]
Changes = Mapping[tuple[str, str], str | float]
MOST_USD = 1_000_000.0
_NEW = b"""\
# What the messages to the model providers may cost, in US dollars; 0 is no cap.
# Days and months are those of UTC.
[caps]
daily_usd = 5.0
monthly_usd = 100.0

[behaviour]
# When a cap is reached: "pause" the gateway, "warn", or do "nothing".
on_cap_trip = "pause"
# A warning comes at this part of a cap, in per cent.
warn_at_pct = 80
"""


class Caps(Struct, frozen=True):
    """The most that a day and a month (UTC) may cost; 0 or less is no cap."""

    daily_usd: float = 5.0
    monthly_usd: float = 100.0

    def __post_init__(self) -> None:
        """Refuse what is no amount."""
        for name in ("daily_usd", "monthly_usd"):
            value = getattr(self, name)
            if not math.isfinite(value) or value > MOST_USD:
                raise ValueError(f"{name}: must be a number of dollars up to {MOST_USD:,.0f}")


class Behaviour(Struct, frozen=True):
    """What is done at a cap, and at how many per cent of it there is a warning."""

    on_cap_trip: OnTrip = "pause"
    warn_at_pct: float = 80.0

    def __post_init__(self) -> None:
        """Refuse what is no part of a cap."""
        if not 0 < self.warn_at_pct <= 100:
            raise ValueError("warn_at_pct: must be more than 0 and 100 at most")


class CostCaps(Struct, frozen=True):
    """The whole record; all of it may be left out."""

    caps: Caps = Caps()
    behaviour: Behaviour = Behaviour()


def parse(data: bytes) -> CostCaps:
    """The caps in the TOML `data`; raises `DecodingError`."""
    return from_toml(data, CostCaps)


def edited(data: bytes | None, changes: Changes) -> bytes:
    """The TOML `data` (None: a new file) with `changes`, by section and key.

    Raises `DecodingError` for a file that cannot be read, and for such values.
    """
    # Loading it takes 7 ms, by which "platformctl cost --json" would miss its row of the bench.
    from platformctl import toml_edit

    return toml_edit.edited(_NEW if data is None else data, changes, parse)
