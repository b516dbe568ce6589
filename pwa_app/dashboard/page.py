"""The start page: the state of the device, and whether there is an update."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache

from flask import Blueprint, Response, redirect, render_template, request
from markupsafe import Markup
from werkzeug import Response as Redirect

from platform_common.clock import local_time
from platform_common.web.factory import request_language
from platform_common.web.language import Language
from pwa_app.context import context
from pwa_app.dashboard.charts import cost_chart
from pwa_app.dashboard.summary import summary
from pwa_app.dashboard.updates import CHECK, COMMAND, news
from pwa_app.overview import OVERVIEW, Overview

blueprint = Blueprint("dashboard", __name__)
# Enough for all cards in two languages, with current and previous values.
_MOST_CARDS = 32


@blueprint.get("/")
def start() -> Redirect:
    """Redirect to the dashboard."""
    return redirect("/app/dashboard")


@blueprint.get("/app/dashboard")
def dashboard() -> str:
    """Show status, version, limits, cost and verdict; a failed call is shown as a stub."""
    called = context()
    overview = Overview(*called.load_all(OVERVIEW))
    verdict, *cards = _cards(overview, request_language())
    return render_template(
        "pwa/dashboard.html",
        verdict=verdict,
        cards=cards,
        all_stub=overview.all_stub,
        sample=called.cli.sample,
    )


def _cards(overview: Overview, language: Language) -> Iterator[Markup]:
    """Yield the cards in their order, the verdict first."""
    shown = summary(overview)
    yield _drawn("verdict", language, headline=shown.headline, passes=shown.health.passes)
    yield _drawn(
        "gateway",
        language,
        slice=overview.status,
        gateway=shown.gateway,
        tunnel=shown.tunnel,
        uptime_s=shown.uptime_s,
        last_fails=shown.last_fails,
        channels=shown.channels,
    )
    yield _drawn("cost", language, slice=overview.cost, spending=shown.spending, chart=cost_chart)
    yield _drawn("health", language, slice=overview.doctor, health=shown.health)
    yield _drawn("limits", language, slice=overview.limits)
    yield _drawn("version", language, slice=overview.version)


# Cached; without it the bench row "pages a second of a bare app" misses.
@lru_cache(_MOST_CARDS)
def _drawn(name: str, language: Language, **values: Hashable) -> Markup:
    """Render one card, which only depends on its values and the language."""
    card = render_template(f"pwa/cards/{name}.html", when=local_time, **values)
    return Markup(card)  # noqa: S704 - the template escapes what it is given


@blueprint.get("/app/update")
def update() -> Response:
    """Show whether there is an update; with `notice`, only the short text for the start page."""
    called = context()
    found = news(called.load(CHECK))
    name = "pwa/_update_notice.html" if "notice" in request.args else "pwa/update.html"
    if found.kind != "available" and "notice" in request.args:
        return Response(status=204)
    page = render_template(name, news=found, command=COMMAND, sample=called.cli.sample)
    return Response(page, content_type="text/html; charset=utf-8")
