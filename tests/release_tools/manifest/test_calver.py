"""Versions: which texts are valid, and their order."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from release_tools.manifest.calver import CalVer, CalVerError, compare
from tests.support.properties import examples

_SUFFIX = "abcdefghijklmnopqrstuvwxyz0123456789.-"


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Valid versions, of few numbers and letters, so that equal parts occur."""
    year = draw(st.integers(0, 9999) | st.integers(2025, 2026))
    month, day = draw(st.integers(0, 99) | st.integers(1, 2)), draw(st.integers(0, 99))
    width = draw(st.sampled_from(["", "02"]))
    suffix = draw(
        st.none() | st.text("a1.-", min_size=1, max_size=3) | st.text(_SUFFIX, min_size=1)
    )
    numbers = f"{year:04}.{month:{width}}.{day:{width}}"
    return numbers if suffix is None else f"{numbers}-{suffix}"


def place(text: str) -> str:
    """A text that sorts as the version does: `~` sorts after every suffix."""
    numbers, dash, suffix = text.partition("-")
    year, month, day = numbers.split(".")
    return year + month.zfill(2) + day.zfill(2) + (suffix if dash else "~")


def test_a_text_that_is_not_a_version_is_refused_and_shown_escaped() -> None:
    # `test_document.py` has a table of invalid versions.
    for text in ("2026.1", "2026.1.1\n", "２０２６.1.1"):
        with pytest.raises(CalVerError, match="is not a version") as caught:
            CalVer.parse(text)
        assert ascii(text) in caught.value.message
        assert "Y.M.D" in caught.value.hint


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        *(("2026.1.9", "2026.1.10"), ("2026.9.30", "2026.10.1"), ("2025.12.31", "2026.1.1")),
        *(("2026.1.1-rc1", "2026.1.1"), ("2026.1.1-zzzz", "2026.1.1")),
        *(("2026.1.1", "2026.1.2-rc1"), ("2026.1.1-rc10", "2026.1.1-rc9")),
        *(("2026.1.1-rc", "2026.1.1-rc1"), ("2026.1.1--", "2026.1.1-.")),
        *(("2026.1.1-9", "2026.1.1-a"), ("2026.01.1-rc1", "2026.1.01-rc2")),
    ],
)
def test_rel_29_the_order_is_that_of_the_specification(lower: str, higher: str) -> None:
    assert compare(CalVer.parse(lower), CalVer.parse(higher)) == -1
    assert compare(CalVer.parse(higher), CalVer.parse(lower)) == 1


@examples(60)
@example("0000.0.0")
@example("9999.99.99-z")
@example("2026.1.1--")
@example("2026.1.1-..")
@example("2026.01.01")
@given(texts())
def test_every_valid_text_is_read_and_written_alike(text: str) -> None:
    version = CalVer.parse(text)
    assert version.text == str(version) == text
    other: object = text
    assert version != other
    numbers, dash, suffix = text.partition("-")
    assert version.parts == tuple(int(part) for part in numbers.split("."))
    assert (version.is_final, version.suffix) == (not dash, suffix)


@examples(120)
@given(texts(), texts(), texts())
def test_rel_29_the_order_is_total_and_matches_that_of_the_texts(
    one: str, other: str, third: str
) -> None:
    a, b = CalVer.parse(one), CalVer.parse(other)
    expected = (place(one) > place(other)) - (place(one) < place(other))
    assert (compare(a, b), compare(b, a)) == (expected, -expected)
    assert [a < b, a == b, a > b].index(True) == expected + 1
    assert [a < b, a == b, a > b].count(True) == 1
    assert (a <= b, a >= b) == (expected <= 0, expected >= 0)
    assert a != b or hash(a) == hash(b)
    low, middle, high = sorted(map(CalVer.parse, (one, other, third)))
    assert low <= middle <= high
    assert low <= high
