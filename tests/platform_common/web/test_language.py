"""The languages of the pages: complete catalogues, and the formats of each language."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from dev.messages import LOCALES, updated
from platform_common.web.language import LANGUAGES, SOURCE, language

TRANSLATED = [code for code in LANGUAGES if code != SOURCE]
# Placeholders: `{name}` in a sentence, `%(name)s` in a template.
PLACEHOLDER = re.compile(r"\{[a-z_]+\}|%\([a-z_]+\)[sd]")
TAG = re.compile(r"</?[a-z]+[^>]*>")
WHEN = datetime(2026, 11, 9, 14, 5, 6, tzinfo=UTC)


def read(code: str) -> Catalog:
    with Path(LOCALES, f"{code}.po").open("rb") as file:
        return read_po(file, locale=code)


def texts(value: object) -> list[str]:
    """The forms of a message or of its translation."""
    return [value] if isinstance(value, str) else [str(form) for form in value]  # type: ignore[attr-defined]  # a tuple of plural forms


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_catalogue_has_exactly_the_texts_of_the_pages(code: str) -> None:
    assert Path(LOCALES, f"{code}.po").read_bytes() == updated(code), "run: make messages"
    # From Python and from templates.
    found = {texts(message.id)[0] for message in read(code) if message.id}
    assert {
        "Skip to the content",
        "There is no such page",
        "There is nothing at this address.",
    } <= found


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_text_is_translated(code: str) -> None:
    lacking = [m.id for m in read(code) if m.id and (m.fuzzy or not all(texts(m.string)))]
    assert lacking == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_translation_has_the_placeholders_and_the_tags_of_its_text(code: str) -> None:
    wrong = []
    for message in read(code):
        if not message.id:
            continue
        places = set(PLACEHOLDER.findall(texts(message.id)[-1]))
        tags = sorted(TAG.findall(texts(message.id)[-1]))
        forms = texts(message.string)
        # The singular form may omit the number.
        if set(PLACEHOLDER.findall(forms[-1])) != places or not all(
            set(PLACEHOLDER.findall(form)) <= places and sorted(TAG.findall(form)) == tags
            for form in forms
        ):
            wrong.append((message.id, message.string))
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "usd", "expected"),
    [
        *(("en", 0, "$0.00"), ("en", 1234.5, "$1,234.50"), ("en", 0.0012, "$0.0012")),
        *(("en", -3, "-$3.00"), ("de", 0, "0,00\xa0$"), ("de", 1234.5, "1.234,50\xa0$")),
        ("de", 0.0012, "0,0012\xa0$"),
    ],
)
def test_money_has_the_format_of_the_language(code: str, usd: float, expected: str) -> None:
    assert language(code).money(usd) == expected


@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, 1e308, -1e308, 1e15, 999_999_999_999.99])
@pytest.mark.parametrize("code", LANGUAGES)
def test_extreme_amounts_have_a_short_text(code: str, value: float) -> None:
    spoken = language(code)
    for written in (spoken.money(value), spoken.number(value), spoken.percent(value)):
        assert 0 < len(written) < 40


@pytest.mark.parametrize(
    ("code", "seconds", "expected"),
    [
        *(("en", 0, "0 seconds"), ("en", 59, "59 seconds"), ("en", 3_600, "1 hour")),
        *(("en", 273_600, "3 days"), ("de", 273_600, "3 Tage"), ("en", 10**18, "317 years")),
    ],
)
def test_a_duration_is_shown_in_its_largest_unit(code: str, seconds: int, expected: str) -> None:
    assert language(code).duration(seconds) == expected


def test_dates_and_times_have_the_format_of_the_language() -> None:
    assert language("en").day("2026-11-09") == "Nov 9, 2026"
    assert language("de").day("2026-11-09") == "09.11.2026"
    assert language("en").day("not a day") == "not a day"
    assert language("de").time(WHEN) == "14:05:06"
    assert language("de").moment(WHEN) == "09.11.2026, 14:05:06"
