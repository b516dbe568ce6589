"""The cost rate sheet: `/etc/platform/cost-defaults.json`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from platform_common.formats.decode import from_json, shaped

_PER = 1_000_000
_HIGHEST = 1_000_000.0


class Rate(Struct, frozen=True):
    """The price of a million tokens at one provider, in US dollars."""

    input_per_1m_usd: float
    output_per_1m_usd: float
    default_model: str = ""

    def __post_init__(self) -> None:
        """Refuse an invalid price."""
        for name in ("input_per_1m_usd", "output_per_1m_usd"):
            if not 0 <= getattr(self, name) <= _HIGHEST:
                raise ValueError(f"{name}: must be 0 to {_HIGHEST:,.0f}")


class CostSheet(Struct, frozen=True):
    """Rates by provider id, for messages without a cost."""

    providers: dict[str, Rate]

    def cost(self, provider: str, input_tokens: int, output_tokens: int) -> float | None:
        """Estimate the cost of a message in US dollars; None if the sheet has no rate for it."""
        rate = self.providers.get(provider)
        if rate is None:
            return None
        return (
            input_tokens * rate.input_per_1m_usd + output_tokens * rate.output_per_1m_usd
        ) / _PER


class _File(Struct, frozen=True):
    providers: dict[str, Any]


def parse(data: bytes) -> CostSheet:
    """Parse the JSON `data`; raises `DecodingError`."""
    rates = from_json(data, _File).providers
    return CostSheet(
        {name: shaped(rate, Rate, at=f"providers.{name}") for name, rate in rates.items()}
    )
