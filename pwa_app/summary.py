"""What the dashboard makes of the five answers: the numbers, the checks, and one verdict on top.

What an answer does not hold is None here, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from itertools import compress
from typing import Any

from msgspec import Struct

from platform_common.control import Slice
from platform_common.sentence import Sentence
from platform_common.views import Check, Cost, Day, Verdict
from pwa_app.overview import Overview, State, state_of

_DAYS = 30
_WEEK = 7
# Nobody has more checks than that; a number without bounds would not fit the page.
_MOST_COUNTED = 999_999
_REMEMBERED = 8


class Window(Struct, frozen=True, cache_hash=True):
    """What was spent in a day or a month, how much that may be, and whether it is too much.

    `state` is a kind (ok, warn, bad) or none; `pct` is of the cap.
    """

    usd: float | None
    cap_usd: float | None
    pct: float | None
    state: str


class Spending(Struct, frozen=True, cache_hash=True):
    """What was spent; `tripped` says that a cap is reached."""

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


class Health(Struct, frozen=True, cache_hash=True):
    """The checks: problems first; counts are those reported, or those that are there."""

    problems: tuple[Check, ...]
    passed: tuple[Check, ...]
    skipped: tuple[Check, ...]
    fails: int | None
    warns: int | None
    passes: int | None
    skips: int | None


class Note(Struct, frozen=True, cache_hash=True):
    """One thing to know, and where more is said about it; `kind` is bad or warn."""

    kind: str
    sentence: Sentence
    href: str
    link: Sentence


class Headline(Struct, frozen=True, cache_hash=True):
    """How the device is, in one line; `kind` is ok, warn or bad."""

    kind: str
    title: Sentence
    notes: tuple[Note, ...]


class Summary(Struct, frozen=True):
    """All that the page shows beside the answers themselves."""

    gateway: State
    tunnel: State
    uptime_s: int | None
    last_fails: int | None
    spending: Spending
    health: Health
    headline: Headline


@lru_cache(_REMEMBERED)
def summary(overview: Overview) -> Summary:
    """What to show of the answers."""
    status = overview.status.value
    gateway = state_of(status.active_state)
    if gateway.kind == "none":
        gateway = state_of(status.agent.active_state)
    uptime = status.uptime_seconds
    money = spending(overview.cost)
    if status.cost_tripped and not money.tripped:
        money = Spending(money.today, money.month, money.week_usd, money.days, True, money.unpriced)
    health = health_of(overview.doctor)
    return Summary(
        gateway=gateway,
        tunnel=state_of(status.tunnel.active_state),
        uptime_s=uptime if uptime is not None and uptime >= 0 else None,
        last_fails=_counted(status.doctor_fails),
        spending=money,
        health=health,
        headline=_headline(overview, gateway, money, health),
    )


def spending(found: Slice[Cost]) -> Spending:
    """The amounts of `cost`."""
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
    # Minus zero is zero, and a sum of amounts may be more than a number can hold.
    return value + 0.0 if math.isfinite(value) else None


def health_of(found: Slice[Verdict]) -> Health:
    """The checks of `doctor` by how they went."""
    verdict, given = found.value, found.given
    checks = {kind: _of_kind(verdict, kind) for kind in ("Fail", "Warn", "Pass", "Skip")}

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


def _counted(number: int | None) -> int | None:
    return None if number is None else min(max(number, 0), _MOST_COUNTED)


def _of_kind(verdict: Verdict, kind: str) -> tuple[Check, ...]:
    return tuple(check for check in verdict.checks if check.outcome.kind == kind)


def _headline(overview: Overview, gateway: State, spending: Spending, health: Health) -> Headline:
    if all(_silent(found) for found in overview):
        return _ALL_SILENT
    notes = tuple(
        sorted(
            (
                *_gateway_notes(overview, gateway),
                *_cost_notes(spending),
                *_health_notes(overview, health),
                *_silence(overview),
            ),
            key=lambda note: note.kind,
        )
    )
    kind = notes[0].kind if notes else "ok"
    if gateway.kind == "bad":
        title = Sentence("The gateway is not running")
    elif kind == "bad":
        title = Sentence("Something needs your attention")
    elif notes and gateway.kind == "ok":
        title = Sentence("The gateway runs, with something to look at")
    elif notes:
        title = Sentence("There is something to look at")
    else:
        title = Sentence("Everything is fine")
    return Headline(kind, title, notes)


_ALL_SILENT = Headline(
    "bad",
    Sentence("The control CLI does not answer"),
    (
        Note(
            "bad",
            Sentence(
                "Each part below says why. On the device, the command platformctl doctor tells"
                " more; the log can be read without it."
            ),
            "/app/logs",
            Sentence("Look at the log"),
        ),
    ),
)


def _gateway_notes(overview: Overview, gateway: State) -> Iterator[Note]:
    log = Sentence("Look at the log")
    if gateway.kind == "bad":
        yield Note(
            "bad",
            Sentence("It does not answer until it is started again. Its log says why it stopped."),
            "/app/logs",
            log,
        )
    elif gateway.kind == "warn":
        yield Note(
            "warn",
            Sentence("The gateway is changing its state. Refresh this page in a moment."),
            "/app/logs",
            log,
        )
    elif gateway.kind == "none" and not _silent(overview.status):
        yield Note(
            "warn",
            Sentence("It is not known whether the gateway runs."),
            "#gateway",
            Sentence("See the gateway"),
        )


def _cost_notes(spending: Spending) -> Iterator[Note]:
    link = Sentence("See the cost")
    if spending.tripped:
        yield Note("bad", Sentence("A cost cap is reached."), "#cost", link)
    elif spending.state == "warn":
        yield Note("warn", Sentence("The cost comes close to its cap."), "#cost", link)


def _health_notes(overview: Overview, health: Health) -> Iterator[Note]:
    link = Sentence("See what to do")
    if health.fails:
        one = Sentence("1 health check found a problem.")
        many = Sentence("{count} health checks found a problem.", count=health.fails)
        yield Note("bad", one if health.fails == 1 else many, "#health", link)
    if health.warns:
        one = Sentence("1 health check warns.")
        many = Sentence("{count} health checks warn.", count=health.warns)
        yield Note("warn", one if health.warns == 1 else many, "#health", link)
    if health.passes is None and health.fails is None and not _silent(overview.doctor):
        yield Note(
            "warn", Sentence("No health check was reported."), "#health", Sentence("See the checks")
        )


def _silence(overview: Overview) -> Iterator[Note]:
    places = ("#gateway", "#version", "#limits", "#cost", "#health")
    link = Sentence("See why")
    silent = [_silent(found) for found in overview]
    for sentence, place in compress(zip(_SILENT, places, strict=True), silent):
        yield Note("warn", sentence, place, link)


_SILENT = (
    Sentence("Nothing is known about the gateway."),
    Sentence("Nothing is known about the version."),
    Sentence("Nothing is known about the limits."),
    Sentence("Nothing is known about the cost."),
    Sentence("Nothing is known about the health of the device."),
)


def _silent(found: Slice[Any]) -> bool:
    """Whether the call failed; a sample answer holds something."""
    return found.stub and not found.given


def moment(text: str) -> datetime | None:
    """The time of a text such as `2026-11-03T10:00:00Z`, in the device's zone; None without one."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return None
