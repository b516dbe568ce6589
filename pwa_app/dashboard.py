"""The start page: how the device is, and whether there is an update."""

from __future__ import annotations

from flask import Blueprint, Response, redirect, render_template, request
from werkzeug import Response as Redirect

from platform_common.web.application import spoken
from pwa_app.charts import cost_chart
from pwa_app.context import context
from pwa_app.overview import OVERVIEW, Overview
from pwa_app.summary import moment, summary
from pwa_app.updates import CHECK, COMMAND, news

blueprint = Blueprint("dashboard", __name__)


@blueprint.get("/")
def start() -> Redirect:
    """To the dashboard."""
    return redirect("/app/dashboard")


@blueprint.get("/app/dashboard")
def dashboard() -> str:
    """Status, version, limits, cost and verdict; a call that failed shows as a stub."""
    called = context()
    overview = Overview(*called.load_all(OVERVIEW))
    shown = summary(overview)
    spending = shown.spending
    return render_template(
        "pwa/dashboard.html",
        overview=overview,
        summary=shown,
        sample=called.cli.sample,
        chart=cost_chart(spending.days, spending.today.cap_usd, spoken()),
        when=moment,
    )


@blueprint.get("/app/update")
def update() -> Response:
    """Whether there is an update; with `notice` only the few words for the start page."""
    called = context()
    found = news(called.load(CHECK))
    name = "pwa/_update_notice.html" if "notice" in request.args else "pwa/update.html"
    if found.kind != "available" and "notice" in request.args:
        return Response(status=204)
    page = render_template(name, news=found, command=COMMAND, sample=called.cli.sample)
    return Response(page, content_type="text/html; charset=utf-8")
