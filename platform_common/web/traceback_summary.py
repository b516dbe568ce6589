"""Where an exception came from, without its text, which may contain user input."""

from __future__ import annotations

_MOST_PLACES = 6


def places(error: BaseException) -> str:
    """The innermost places of its traceback, starting with the one that raised it."""
    found = []
    where = error.__traceback__
    while where is not None:
        code = where.tb_frame.f_code
        found.append(f"{code.co_filename.rpartition('/')[2]}:{where.tb_lineno} {code.co_name}")
        where = where.tb_next
    return " < ".join(reversed(found[-_MOST_PLACES:]))
