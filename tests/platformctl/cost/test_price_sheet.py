"""The cost rate sheet: what ships, and what a message costs."""

from __future__ import annotations

import pytest

from platform_common.formats.decode import DecodingError
from platform_common.resources import data_path
from platformctl.cost.price_sheet import CostSheet, Rate, parse

SHIPPED = parse(data_path("cost-defaults.json").read_bytes())


@pytest.mark.parametrize(
    ("provider", "dollars"),
    [
        *(("openrouter", (3, 15)), ("anthropic", (3, 15)), ("openai", (2.5, 10))),
        *(("google-ai-studio", (0.1, 0.4)), ("mistral", (2, 6)), ("local-ollama", (0, 0))),
    ],
)
def test_shipped_rates_match_the_expected_prices(
    provider: str, dollars: tuple[float, float]
) -> None:
    rate = SHIPPED.providers[provider]
    assert (rate.input_per_1m_usd, rate.output_per_1m_usd) == dollars


def test_a_cost_includes_both_kinds_of_tokens() -> None:
    sheet = CostSheet({"x": Rate(2.0, 10.0)})
    assert sheet.cost("x", 1_000_000, 0) == 2.0
    assert sheet.cost("x", 0, 500_000) == 5.0
    assert sheet.cost("x", 1000, 100) == pytest.approx(0.003)
    assert sheet.cost("x", 0, 0) == 0.0


def test_without_a_rate_the_cost_is_unknown_and_not_zero() -> None:
    assert SHIPPED.cost("nobody", 1000, 1000) is None
    assert SHIPPED.cost("local-ollama", 1000, 1000) == 0.0


def test_a_bad_rate_is_reported_with_its_provider() -> None:
    with pytest.raises(DecodingError) as error:
        parse(b'{"providers": {"x": {"input_per_1m_usd": -1, "output_per_1m_usd": 1}}}')
    assert error.value.message == "providers.x.input_per_1m_usd: must be 0 to 1,000,000"
