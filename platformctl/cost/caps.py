"""The cost caps, and what happens when one is reached: `/etc/platform/cost.toml`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from platform_common.formats.decode import from_toml
from platformctl import toml_edit

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
    """The caps for a day and a month (UTC); 0 or less means no cap."""

    daily_usd: float = 5.0
    monthly_usd: float = 100.0

    def __post_init__(self) -> None:
        """Refuse an invalid amount."""
        for name in ("daily_usd", "monthly_usd"):
            value = getattr(self, name)
            if not math.isfinite(value) or value > MOST_USD:
                raise ValueError(f"{name}: must be a number of dollars up to {MOST_USD:,.0f}")


class Behaviour(Struct, frozen=True):
    """What to do at a cap, and at what percentage of it to warn."""

    on_cap_trip: OnTrip = "pause"
    warn_at_pct: float = 80.0

    def __post_init__(self) -> None:
        """Refuse an invalid percentage."""
        if not 0 < self.warn_at_pct <= 100:
            raise ValueError("warn_at_pct: must be more than 0 and at most 100")


class CostCaps(Struct, frozen=True):
    """The whole record; every part is optional."""

    caps: Caps = Caps()
    behaviour: Behaviour = Behaviour()


def parse(data: bytes) -> CostCaps:
    """Parse the TOML `data`; raises `DecodingError`."""
    return from_toml(data, CostCaps)


def edited(data: bytes | None, changes: Changes) -> bytes:
    """Return the TOML `data` (None: a new file) with `changes`, by section and key.

    Raises `DecodingError` for a file that cannot be read, and for invalid values.
    """
    return toml_edit.edited(_NEW if data is None else data, changes, parse)
