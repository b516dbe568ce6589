"""The date-times of a manifest (RFC 3339)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def parse_date_time(text: str) -> datetime:
    """Return an RFC 3339 date-time with an offset, in UTC; raises `ValueError`.

    A leap second is accepted at the end of June or December in UTC, where one can occur, and
    becomes the second before.
    """
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    sign, offset_hours, offset_minutes = match.groups()[6:]
    offset = timedelta(0)
    if sign:
        if int(offset_hours) > 23 or int(offset_minutes) > 59:
            raise ValueError(text)
        offset = timedelta(hours=int(offset_hours), minutes=int(offset_minutes))
    zone = timezone(-offset if sign == "-" else offset)
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone)
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(text) from None
    leap_moment = (moment.month, moment.day, moment.hour, moment.minute)
    if second > 60 or (second == 60 and leap_moment not in ((6, 30, 23, 59), (12, 31, 23, 59))):
        raise ValueError(text)
    return moment
