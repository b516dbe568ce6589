"""The device's clock, which starts in 1970 on a board without a battery."""

from __future__ import annotations

from datetime import UTC, date, datetime

from platform_common.version import VERSION


def today() -> date:
    """Today by the device's clock, UTC."""
    return datetime.now(UTC).date()


def now() -> str:
    """The current time: RFC 3339, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_implausible(day: date) -> bool:
    """Whether `day` is before the release of this software."""
    return day < _made()


def plausible_day() -> date:
    """Today, but never before the day of this software's release."""
    return max(today(), _made())


def _made() -> date:
    year, month, *_ = VERSION.split(".")
    return date(int(year), int(month), 1)
