"""Where an exception came from, without any value: its text may hold what was sent."""

from __future__ import annotations

_MOST_PLACES = 6


def places(error: BaseException) -> str:
    """The innermost places of its traceback, the place that raised it first."""
    found = []
    where = error.__traceback__
    while where is not None:
        code = where.tb_frame.f_code
        found.append(f"{code.co_filename.rpartition('/')[2]}:{where.tb_lineno} {code.co_name}")
        where = where.tb_next
    return " < ".join(reversed(found[-_MOST_PLACES:]))
