"""The cost ledger: which lines are valid, and their sums."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.resources import schema
from platform_common.storage.reverse_lines import LINE_BYTES
from platformctl.cost.ledger import (
    DAYS,
    DEAREST,
    NANO,
    Price,
    Spent,
    nano,
    parse,
    priced,
    spent,
)
from tests.support.properties import steady

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def no_price(provider: str, input_tokens: int, output_tokens: int) -> float | None:
    return None


def cent_a_token(provider: str, input_tokens: int, output_tokens: int) -> float | None:
    return (input_tokens + output_tokens) / 100 if provider == "listed" else None


def line(timestamp: datetime | str = NOW, **members: Any) -> bytes:
    when = timestamp if isinstance(timestamp, str) else timestamp.isoformat()
    return json.dumps({"timestamp": when, "provider": "openai"} | members).encode()


def sums(lines: Sequence[bytes], now: datetime = NOW, price: Price = no_price) -> Spent:
    return spent([lines], now, price)


def by_day(result: Spent) -> dict[str, float]:
    return {str(day): usd / NANO for day, usd in result.days if usd}


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(line()[:-1], id="torn"),
        pytest.param(line()[5:], id="without-its-beginning"),
        pytest.param(line() + line(), id="two-in-one"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[]", id="an-array"),
        pytest.param(b"Nov 20 host sshd[1]: hello", id="another-log"),
        pytest.param(b'{"provider": "openai"}', id="no-time"),
        pytest.param(b'{"timestamp": "2026-11-20T12:00:00Z"}', id="no-provider"),
        pytest.param(line("2026-11-20T12:00:00"), id="a-time-without-offset"),
        pytest.param(line("2026-02-30T12:00:00Z"), id="no-such-day"),
        pytest.param(line("yesterday"), id="no-time-at-all"),
        pytest.param(b'{"timestamp": 1763640000, "provider": "openai"}', id="a-time-as-a-number"),
        pytest.param(line(provider=None), id="provider-null"),
        pytest.param(line(input_tokens=-1), id="negative-tokens"),
        pytest.param(line(input_tokens=1.5), id="half-a-token"),
        pytest.param(line(output_tokens=10**13), id="too-many-tokens"),
        pytest.param(line(output_tokens=True), id="tokens-true"),
        pytest.param(line(cost_usd=-0.01), id="negative-cost"),
        pytest.param(line(cost_usd="0.01"), id="cost-as-text"),
        pytest.param(line(cost_usd=True), id="cost-true"),
        pytest.param(line(cost_usd=float("nan")), id="nan"),
        pytest.param(line(cost_usd=float("inf")), id="infinity"),
        pytest.param(line()[:-1] + b', "cost_usd": 1e999}', id="out-of-range"),
        pytest.param(line(cost_usd=1e7), id="more-than-any-message-costs"),
        pytest.param(line(model="\ud800"), id="half-a-surrogate"),
        pytest.param(line(model="X").replace(b"X", b"\xff"), id="not-utf-8"),
        pytest.param(b"\xef\xbb\xbf" + line(), id="byte-order-mark"),
        pytest.param(b"\x00" * 100, id="nul"),
        pytest.param(line(model="x" * LINE_BYTES), id="over-long"),
        pytest.param(b'{"a":' + b"[" * 30_000, id="deeply-nested"),
        pytest.param(line()[:-1] + b', "a":' + b"[" * 30_000, id="deeply-nested-in-a-good-one"),
    ],
)
def test_an_invalid_line_is_counted_and_skipped(bad: bytes) -> None:
    assert parse(bad) is None
    result = sums([line(cost_usd=1), bad, line(cost_usd=2)])
    assert (by_day(result), result.unreadable) == ({"2026-11-20": 3.0}, 1)


@given(st.binary(max_size=200))
@steady
def test_no_bytes_raise_an_error(data: bytes) -> None:
    assert sums([data]).unreadable == 1


@pytest.mark.parametrize(
    "good",
    [
        pytest.param({}, id="least"),
        pytest.param({"cost_usd": None}, id="cost-null"),
        pytest.param({"model": None, "request_id": None}, id="texts-null"),
        pytest.param({"input_tokens": None, "output_tokens": None}, id="tokens-null"),
        pytest.param({"cost_usd": 3}, id="whole-dollars"),
        pytest.param({"unknown": [1]}, id="unknown-member"),
        pytest.param({"input_tokens": 10**12, "cost_usd": 10**6}, id="most"),
        pytest.param({"timestamp": "2026-11-20T12:00:00.123456+05:30"}, id="offset"),
    ],
)
def test_lines_that_the_schema_allows_are_read(good: dict[str, Any]) -> None:
    tree = {"timestamp": "2026-11-20T12:00:00Z", "provider": "x"} | good
    jsonschema.validate(tree, schema("cost-ledger-line"))
    assert parse(json.dumps(tree).encode()) is not None


@given(st.lists(st.floats(0, 10**6), max_size=50))
@steady
def test_the_order_of_the_lines_does_not_matter(amounts: list[float]) -> None:
    lines = [line(cost_usd=amount) for amount in amounts]
    assert sums(lines).month == sums(lines[::-1]).month == sum(map(nano, amounts))


def test_there_are_thirty_days_and_today_is_the_last() -> None:
    days = sums([]).days
    assert [days[0], days[-1]] == [(date(2026, 10, 22), 0), (date(2026, 11, 20), 0)]
    assert len(days) == DAYS
    assert all(b[0] - a[0] == timedelta(days=1) for a, b in itertools.pairwise(days))


@pytest.mark.parametrize(
    ("timestamp", "day"),
    [
        pytest.param("2026-11-20T00:00:00Z", "2026-11-20", id="midnight-begins-the-day"),
        pytest.param("2026-11-19T23:59:59.999999Z", "2026-11-19", id="the-moment-before"),
        pytest.param("2026-11-20T01:30:00+02:00", "2026-11-19", id="east-of-utc"),
        pytest.param("2026-11-18T20:00:00-05:00", "2026-11-19", id="west-of-utc"),
        pytest.param("2026-10-22T00:00:00Z", "2026-10-22", id="the-oldest-day"),
    ],
)
def test_clk_03_a_day_is_a_day_in_utc(timestamp: str, day: str) -> None:
    assert by_day(sums([line(timestamp, cost_usd=1)])) == {day: 1.0}


@pytest.mark.parametrize(
    ("now", "timestamps", "month", "shown"),
    [
        pytest.param("2026-12-31", ["2026-12-01", "2026-11-30"], 1, 0, id="31-days"),
        pytest.param("2026-03-01", ["2026-03-01", "2026-02-28", "2026-01-31"], 1, 3, id="1st"),
        pytest.param("2028-02-29", ["2028-02-29", "2028-01-31", "2028-01-30"], 1, 2, id="leap-day"),
        pytest.param("1970-01-01", ["1970-01-01", "1969-12-31"], 1, 2, id="first-boot"),
        pytest.param("2038-01-20", ["2038-01-19", "2038-01-20"], 2, 2, id="after-2038"),
    ],
)
def test_the_month_is_the_calendar_month(
    now: str, timestamps: list[str], month: int, shown: int
) -> None:
    lines = [line(f"{day}T10:00:00Z", cost_usd=1) for day in timestamps]
    result = sums(lines, datetime.fromisoformat(f"{now}T12:00:00Z"))
    assert result.month == month * NANO
    assert sum(usd for _, usd in result.days) == shown * NANO


def test_clk_01_lines_from_a_future_day_count_for_no_day_and_are_reported() -> None:
    later_today = NOW.replace(hour=23)
    result = sums([line(cost_usd=1), line(later_today, cost_usd=2), line("2027-01-01T00:00:00Z")])
    assert (by_day(result), result.month, result.future) == ({"2026-11-20": 3.0}, 3 * NANO, 1)


def test_reading_stops_after_a_block_that_is_older_than_every_window() -> None:
    asked = []

    def blocks() -> Any:
        for day in (19, 1, -40, -400):
            asked.append(day)
            yield [line(NOW.replace(day=1) + timedelta(days=day - 1), cost_usd=1), b"torn"]

    result = spent(blocks(), NOW, no_price)
    assert asked == [19, 1, -40]
    assert (result.month, result.unreadable) == (2 * NANO, 3)


@pytest.mark.parametrize(
    "last",
    [
        pytest.param([line(NOW - timedelta(days=29, hours=20)), b"x"], id="a-day-out-of-order"),
        pytest.param([b"torn", b"foreign"], id="nothing-readable"),
        pytest.param([], id="nothing"),
        pytest.param([line("2031-01-01T00:00:00Z"), line("1970-01-01T00:00:00Z")], id="both-ends"),
    ],
)
def test_reading_continues_after_a_block_that_may_be_in_a_window(last: list[bytes]) -> None:
    assert spent([last, [line(cost_usd=1)]], NOW, no_price).month == NANO


def test_without_a_cost_the_rate_sheet_estimates_it_and_without_a_rate_it_is_unknown() -> None:
    lines = [line(provider="listed", input_tokens=150, output_tokens=50), line(), line(cost_usd=0)]
    result = sums(lines, price=cent_a_token)
    assert (by_day(result), result.unknown) == ({"2026-11-20": 2.0}, 1)
    (estimated,) = result.dearest
    assert (estimated.cost_usd, estimated.estimated) == (2.0, True)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param({"cost_usd": 0.5, "provider": "listed"}, (0.5, False, False), id="stated"),
        pytest.param(
            {"provider": "listed", "input_tokens": 7}, (0.07, True, False), id="estimated"
        ),
        pytest.param({"provider": "listed"}, (0.0, True, False), id="free"),
        pytest.param({"input_tokens": 7}, (0.0, False, True), id="unknown"),
    ],
)
def test_a_message_says_where_its_cost_comes_from(
    members: dict[str, Any], expected: tuple[float, bool, bool]
) -> None:
    message = parse(line(**members))
    assert message is not None
    one = priced(message, cent_a_token)
    assert (one.cost_usd, one.estimated, one.cost_unknown) == expected


def test_unknown_costs_and_expensive_messages_are_those_of_the_thirty_days() -> None:
    first_of_31 = "2026-12-01T10:00:00Z"
    lines = [
        line(first_of_31),
        line(first_of_31, cost_usd=9),
        line("2026-12-02T10:00:00Z", cost_usd=1),
    ]
    result = sums(lines, datetime(2026, 12, 31, tzinfo=UTC))
    assert (result.month, result.unknown) == (10 * NANO, 0)
    assert [one.cost_usd for one in result.dearest] == [1.0]


@given(st.lists(st.integers(0, 30), max_size=40))
@steady
def test_the_most_expensive_messages_come_first(cents: list[int]) -> None:
    lines = [line(cost_usd=cost / 100) for cost in cents]
    expected = sorted((cost / 100 for cost in cents if cost), reverse=True)[:DEAREST]
    assert [one.cost_usd for one in sums(lines).dearest] == expected


def test_of_equally_expensive_messages_the_newer_come_first() -> None:
    lines = [line(NOW - timedelta(hours=n), cost_usd=1) for n in (2, 0, 1)]
    assert [one.message.timestamp.hour for one in sums(lines).dearest] == [12, 11, 10]
