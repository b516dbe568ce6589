"""The languages of the pages: catalogues, and formats of numbers, money and times."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from gettext import GNUTranslations, NullTranslations
from pathlib import Path

from babel import Locale
from babel.dates import format_date, format_datetime, format_time, format_timedelta
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_currency, format_decimal, format_percent

from platform_common import web

# Language code to its own name for itself.
LANGUAGES: Mapping[str, str] = {"en": "English", "de": "Deutsch"}
SOURCE = "en"
# Smaller amounts would be rounded to 0.00.
_SMALLEST_SHOWN = 0.005


class Language:
    """One language: translations, and formats."""

    def __init__(self, code: str, catalogue: NullTranslations) -> None:
        self.code = code
        self._locale = Locale.parse(code)
        self._catalogue = catalogue

    def gettext(self, text: str) -> str:
        """Translate a text."""
        return self._catalogue.gettext(text)

    def ngettext(self, one: str, many: str, count: int) -> str:
        """Translate a text with a number."""
        return self._catalogue.ngettext(one, many, count)

    def money(self, usd: float) -> str:
        """Format US dollars with two decimals, or with more for amounts below a cent."""
        if abs(usd) >= 1e12:
            return f"$ {usd:.2e}"
        if 0 < abs(usd) < _SMALLEST_SHOWN:
            finer = self._locale.currency_formats["standard"].pattern.replace("0.00", "0.0000")
            return str(format_currency(usd, "USD", finer, self._locale, currency_digits=False))
        return str(format_currency(usd, "USD", locale=self._locale))

    def number(self, value: float) -> str:
        """Format a number with separators."""
        if abs(value) >= 1e15:
            return f"{Decimal(value):.2e}"
        return str(format_decimal(value, locale=self._locale))

    def percent(self, value: float) -> str:
        """Format a percentage as a whole number."""
        if abs(value) >= 1e12:
            return f"{value:.0e} %"
        return str(format_percent(value / 100, locale=self._locale))

    def duration(self, seconds: int) -> str:
        """Format a duration in its largest unit."""
        return str(format_timedelta(max(min(seconds, 10**10), 0), threshold=1, locale=self._locale))

    def time(self, when: datetime) -> str:
        """Format the time of day, with seconds."""
        return str(format_time(when, "HH:mm:ss", locale=self._locale))

    def moment(self, when: datetime) -> str:
        """Format a date and a time."""
        return str(format_datetime(when, "medium", locale=self._locale))

    def day(self, date: str) -> str:
        """Format an ISO date; other text is returned unchanged."""
        try:
            when = datetime.fromisoformat(date).replace(tzinfo=UTC)
            return str(format_date(when, "medium", locale=self._locale))
        except ValueError:
            return date


@cache
def language(code: str) -> Language:
    """Return the language `code`, one of `LANGUAGES`, loaded at first use."""
    return Language(code, _catalogue(code))


def preferred(wanted: Iterable[tuple[str, float]]) -> str:
    """Choose a language for these preferences, the best first, each with a weight of 0 to 1.

    A dialect counts as its language: with Swiss German preferred, the page is in German.
    """
    codes = (tag.partition("-")[0].lower() for tag, weight in wanted if weight > 0)
    return next((code for code in codes if code in LANGUAGES), SOURCE)


def _catalogue(code: str) -> NullTranslations:
    if code == SOURCE:
        return NullTranslations()
    with Path(web.__path__[0], "locales", f"{code}.po").open("rb") as source:
        catalogue = read_po(source, locale=code)
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return GNUTranslations(compiled)
