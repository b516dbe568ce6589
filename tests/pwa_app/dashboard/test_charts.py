"""The chart of the costs per day."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.control_answers import Day
from platform_common.web.language import language
from pwa_app.dashboard.charts import Chart, cost_chart
from tests.support.properties import examples

ENGLISH = language("en")
WEEK = tuple(Day(f"2026-11-{day:02}", usd) for day, usd in enumerate((0, 1, 2, 4, 0.5, 0, 3), 1))


def heights(chart: Chart) -> list[float]:
    return [float(bar.attrib["height"]) for bar in bars(chart)]


def bars(chart: Chart) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(chart.svg).iter("rect"))


def test_the_height_of_a_bar_is_proportional_to_the_cost_of_its_day() -> None:
    found = heights(cost_chart(WEEK, None, ENGLISH))
    assert found == [0, 17.5, 35, 70, 8.8, 0, 52.5]


def test_the_label_states_the_range_the_total_and_the_maximum() -> None:
    chart = cost_chart(WEEK, None, ENGLISH)
    label = "Cost per day from Nov 1, 2026 to Nov 7, 2026: $10.50 in total, $4.00 at most."
    svg = ElementTree.fromstring(chart.svg)
    assert chart.label == svg.attrib["aria-label"] == label
    assert svg.attrib["role"] == "img"


def test_each_bar_and_each_row_states_its_day_and_the_newest_row_is_first() -> None:
    chart = cost_chart(WEEK, None, ENGLISH)
    assert bars(chart)[3].findtext("title") == "Nov 4, 2026: $4.00"
    assert chart.rows[0] == ("Nov 7, 2026", "$3.00")
    assert len(chart.rows) == 7
    assert cost_chart(WEEK, None, language("de")).rows[0] == ("07.11.2026", "3,00\xa0$")
    assert cost_chart((), 5.0, ENGLISH).rows == ()


@pytest.mark.parametrize(
    ("cap_usd", "drawn"),
    [(None, False), (0.0, False), (-1.0, False), (2.0, True), (4.0, True), (4.1, False)],
)
def test_the_cap_is_drawn_if_it_is_within_the_height_of_the_bars(
    cap_usd: float | None, drawn: bool
) -> None:
    chart = cost_chart(WEEK, cap_usd, ENGLISH)
    assert chart.cap_is_drawn is drawn
    assert ('class="cap"' in chart.svg) is drawn
    # The content security policy allows it.
    assert "style" not in chart.svg
    assert "<script" not in chart.svg


def test_a_day_with_a_tiny_cost_has_a_visible_bar_and_one_without_has_none() -> None:
    days = (Day("2026-11-01", 1000.0), Day("2026-11-02", 0.0001), Day("2026-11-03", 0.0))
    assert heights(cost_chart(days, None, ENGLISH)) == [70, 1, 0]


def test_hostile_dates_are_cut_and_escaped() -> None:
    chart = cost_chart((Day('"><script>alert(1)</script>' + "x" * 10_000, 1.0),), None, ENGLISH)
    assert "<script" not in chart.svg
    assert len(chart.svg) < 1000


@examples(200)
@given(
    st.lists(st.tuples(st.text(), st.floats(allow_nan=False, allow_infinity=False)), max_size=40),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
def test_cli_14_any_amounts_make_a_chart_whose_bars_fit(
    days: list[tuple[str, float]], cap_usd: float | None
) -> None:
    printable = tuple(Day("".join(filter(str.isprintable, date)), usd) for date, usd in days)
    chart = cost_chart(printable, cap_usd, ENGLISH)
    assert all(0 <= height <= 70 for height in heights(chart))
    assert len(heights(chart)) == len(days)
