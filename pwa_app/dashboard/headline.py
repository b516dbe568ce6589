"""The verdict at the top of the start page: one line, and notes on problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from platform_common.message import Sentence
from pwa_app.control_client import Slice
from pwa_app.dashboard.dashboard_figures import Health, Spending
from pwa_app.overview import Overview, State


class Note(Struct, frozen=True):
    """One problem, and the page with details; `kind` is bad or warn."""

    kind: str
    sentence: Sentence
    href: str
    link: Sentence


class Headline(Struct, frozen=True):
    """The state of the device in one line; `kind` is ok, warn or bad."""

    kind: str
    title: Sentence
    notes: tuple[Note, ...]


def headline_of(overview: Overview, gateway: State, spending: Spending, health: Health) -> Headline:
    """Derive the verdict from the answers."""
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
            key=lambda note: note.kind != "bad",  # Problems before warnings.
        )
    )
    kind = notes[0].kind if notes else "ok"
    if gateway.kind == "bad":
        title = Sentence("The gateway is not running")
    elif kind == "bad":
        title = Sentence("Something needs your attention")
    elif notes and gateway.kind == "ok":
        title = Sentence("The gateway is running, but something needs your attention")
    elif notes:
        title = Sentence("Something needs your attention")
    else:
        title = Sentence("Everything is fine")
    return Headline(kind, title, notes)


_ALL_SILENT = Headline(
    "bad",
    Sentence("The control CLI is not answering"),
    (
        Note(
            "bad",
            Sentence(
                "Each part below says why. The command platformctl doctor on the device "
                "shows more, and you can read the log without the control CLI."
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
            Sentence("It won't answer until it is started again. Its log says why it stopped."),
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
            Sentence("We could not find out whether the gateway is running."),
            "#gateway",
            Sentence("See the gateway"),
        )


def _cost_notes(spending: Spending) -> Iterator[Note]:
    link = Sentence("See the cost")
    if spending.tripped:
        yield Note("bad", Sentence("A cost cap has been reached."), "#cost", link)
    elif spending.state == "warn":
        yield Note("warn", Sentence("The cost is close to its cap."), "#cost", link)


def _health_notes(overview: Overview, health: Health) -> Iterator[Note]:
    link = Sentence("See what to do")
    # A `Sentence` has one text, so singular and plural are two.
    if health.fails:
        one = Sentence("1 health check found a problem.")
        many = Sentence("{count} health checks found a problem.", count=health.fails)
        yield Note("bad", one if health.fails == 1 else many, "#health", link)
    if health.warns:
        one = Sentence("1 health check shows a warning.")
        many = Sentence("{count} health checks show a warning.", count=health.warns)
        yield Note("warn", one if health.warns == 1 else many, "#health", link)
    if health.passes is None and health.fails is None and not _silent(overview.doctor):
        yield Note(
            "warn", Sentence("No health check was reported."), "#health", Sentence("See the checks")
        )


def _silence(overview: Overview) -> Iterator[Note]:
    link = Sentence("See why")
    for name, (sentence, place) in _SILENT.items():
        if _silent(getattr(overview, name)):
            yield Note("warn", sentence, place, link)


# By the field of `Overview`: what is missing, and where the page says why.
_SILENT = {
    "status": (Sentence("There is no information about the gateway."), "#gateway"),
    "version": (Sentence("There is no information about the version."), "#version"),
    "limits": (Sentence("There is no information about the limits."), "#limits"),
    "cost": (Sentence("There is no information about the cost."), "#cost"),
    "doctor": (Sentence("There is no information about the health of the device."), "#health"),
}


def _silent(found: Slice[Any]) -> bool:
    """Whether the call failed; a sample answer is not empty."""
    return found.stub and not found.given
