"""The cost caps."""

from __future__ import annotations

import contextlib
import tomllib

import pytest
from jsonschema import Draft202012Validator

from platform_common.formats.decode import DecodingError
from platform_common.resources import schema
from platformctl.cost.caps import Behaviour, Caps, CostCaps, edited, parse

VALIDATOR = Draft202012Validator(schema("cost"))
WHOLE = b"""\
[caps]
daily_usd = 2.5
monthly_usd = 50
[behaviour]
on_cap_trip = "warn"
warn_at_pct = 70
"""


def test_a_whole_file_is_read() -> None:
    assert parse(WHOLE) == CostCaps(Caps(2.5, 50.0), Behaviour("warn", 70.0))


@pytest.mark.parametrize("data", [b"", b"[caps]\n", b"[other]\nx = 1\n[caps]\nnew = 2\n"])
def test_missing_keys_have_their_defaults(data: bytes) -> None:
    assert parse(data) == CostCaps(Caps(5.0, 100.0), Behaviour("pause", 80.0))


@pytest.mark.parametrize("amount", ["0", "-1.0", "1e6", "0.000000001"])
def test_valid_amounts_are_accepted(amount: str) -> None:
    data = f"[caps]\ndaily_usd = {amount}\n"
    assert parse(data.encode()).caps.daily_usd == float(amount)
    VALIDATOR.validate(tomllib.loads(data))


BAD = [
    pytest.param("[caps]\ndaily_usd = nan", "caps.daily_usd: must be a number of", id="nan"),
    pytest.param("[caps]\ndaily_usd = inf", "caps.daily_usd: must be a number of", id="infinity"),
    pytest.param("[caps]\nmonthly_usd = -inf", "caps.monthly_usd: must be", id="minus-infinity"),
    pytest.param("[caps]\nmonthly_usd = 1e7", "caps.monthly_usd: must be", id="huge"),
    pytest.param(f"[caps]\nmonthly_usd = 1{'0' * 400}", "caps.monthly_usd", id="endless"),
    pytest.param('[caps]\ndaily_usd = "5"', "caps.daily_usd: expected float", id="text"),
    pytest.param("[caps]\ndaily_usd = true", "caps.daily_usd: expected float", id="true"),
    pytest.param("caps = 5", "caps: expected object", id="not-a-table"),
    pytest.param('[behaviour]\non_cap_trip = "stop"', "behaviour.on_cap_trip:", id="not-a-word"),
    pytest.param(
        "[behaviour]\nwarn_at_pct = 0", "behaviour.warn_at_pct: must be", id="not-a-share"
    ),
    pytest.param("[behaviour]\nwarn_at_pct = 101", "behaviour.warn_at_pct: must be", id="over-100"),
    pytest.param("[behaviour]\nwarn_at_pct = nan", "behaviour.warn_at_pct: must", id="nan-share"),
    pytest.param("[caps", "not valid TOML", id="torn"),
    pytest.param("[caps]\ndaily_usd = 1\ndaily_usd = 2", "not valid TOML", id="duplicate-key"),
]


@pytest.mark.parametrize(("text", "problem"), BAD)
def test_a_bad_value_is_refused_with_its_place_and_by_the_schema_and_its_file_is_unchanged(
    text: str, problem: str
) -> None:
    for use in (parse, lambda data: edited(data, {("caps", "daily_usd"): 1.0})):
        with pytest.raises(DecodingError) as caught:
            use(text.encode())
        assert problem in caught.value.message
    # The schema refuses the same values, except those that JSON cannot represent.
    with contextlib.suppress(tomllib.TOMLDecodeError):
        assert "nan" in text or "-inf" in text or not VALIDATOR.is_valid(tomllib.loads(text))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e7, "5"])
def test_invalid_caps_are_never_written(value: float | str) -> None:
    with pytest.raises(DecodingError):
        edited(WHOLE, {("caps", "daily_usd"): value})


def test_a_new_file_explains_itself() -> None:
    data = edited(None, {("caps", "daily_usd"): 1.0, ("behaviour", "on_cap_trip"): "nothing"})
    assert parse(data) == CostCaps(Caps(1.0, 100.0), Behaviour("nothing", 80.0))
    assert data.count(b"#") == 4
