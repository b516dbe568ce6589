"""The amounts and the checks for the start page.

Members that an answer does not have are None, never 0.
"""

from __future__ import annotations

import math

from msgspec import Struct

from platform_common.control_answers import Check, Cost, Day, Verdict
from pwa_app.control_client import Slice

_DAYS = 30
_WEEK = 7
# A bound, so that any number fits the page; there are never more checks.
_MOST_COUNTED = 999_999


class Window(Struct, frozen=True):
    """The cost of a day or a month, its cap, and its state.

    `state` is a kind (ok, warn, bad) or none; `pct` is the percentage of the cap.
    """

    usd: float | None
    cap_usd: float | None
    pct: float | None
    state: str


class Spending(Struct, frozen=True):
    """The cost; `tripped` says that a cap is reached."""

    today: Window
    month: Window
    week_usd: float | None
    days: tuple[Day, ...]
    tripped: bool
    unpriced: int | None

    @property
    def state(self) -> str:
        """The worse of both windows."""
        kinds = (self.today.state, self.month.state)
        if self.tripped:
            return "bad"
        return next((kind for kind in ("warn", "ok") if kind in kinds), "none")


class Health(Struct, frozen=True):
    """The checks, problems first; counts are the reported ones, otherwise counted here."""

    problems: tuple[Check, ...]
    passed: tuple[Check, ...]
    skipped: tuple[Check, ...]
    fails: int | None
    warns: int | None
    passes: int | None
    skips: int | None


def spending(found: Slice[Cost]) -> Spending:
    """The amounts in the answer to `cost`."""
    cost, given = found.value, found.given
    days = tuple(sorted(cost.days, key=lambda day: day.date)[-_DAYS:])
    return Spending(
        today=_window(found, "today", "daily"),
        month=_window(found, "month", "monthly"),
        week_usd=_amount(sum(day.usd for day in days[-_WEEK:])) if days else None,
        days=days,
        tripped=cost.tripped or "tripped" in (cost.daily_state, cost.monthly_state),
        unpriced=cost.unknown_messages if "unknown_messages" in given else None,
    )


def _window(found: Slice[Cost], spent: str, window: str) -> Window:
    def number(name: str) -> float | None:
        return _amount(getattr(found.value, name)) if name in found.given else None

    usd, cap, pct = number(f"{spent}_usd"), number(f"{window}_cap_usd"), number(f"{window}_pct")
    if pct is None and usd is not None and cap is not None and cap > 0:
        pct = _amount(100 * (usd / cap))
    kinds = {"ok": "ok", "warn": "warn", "tripped": "bad"}
    name = f"{window}_state"
    return Window(
        usd, cap, pct, kinds[getattr(found.value, name)] if name in found.given else "none"
    )


def _amount(value: float) -> float | None:
    # -0.0 becomes 0, and a sum may overflow to infinity.
    return value + 0.0 if math.isfinite(value) else None


def health_of(found: Slice[Verdict]) -> Health:
    """The checks of `doctor`, by outcome."""
    verdict, given = found.value, found.given
    checks = {
        kind: tuple(check for check in verdict.checks if check.outcome.kind == kind)
        for kind in ("Fail", "Warn", "Pass", "Skip")
    }

    def count(name: str, kind: str) -> int | None:
        there = len(checks[kind])
        if name in given:
            reported: int = getattr(verdict, name)
            return min(max(there, reported), _MOST_COUNTED)
        return there if "checks" in given else None

    return Health(
        problems=checks["Fail"] + checks["Warn"],
        passed=checks["Pass"],
        skipped=checks["Skip"],
        fails=count("fails", "Fail"),
        warns=count("warns", "Warn"),
        passes=count("passes", "Pass"),
        skips=count("skips", "Skip"),
    )


def counted(number: int | None) -> int | None:
    """A reported count, limited to what a page can show."""
    return None if number is None else min(max(number, 0), _MOST_COUNTED)
