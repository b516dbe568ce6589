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


def local_time(text: str) -> datetime | None:
    """Parse a time such as `2026-11-03T10:00:00Z`, into the device's zone, or return None."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return None


def is_implausible(day: date) -> bool:
    """Whether `day` is before the month of this version, as on a clock that was never set."""
    return day < release_month()


def release_month() -> date:
    """The first day of the month of this version; not its day, as tests run before the release."""
    year, month, *_ = VERSION.split(".")
    return date(int(year), int(month), 1)
