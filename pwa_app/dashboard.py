"""The start page: how the device is."""

from __future__ import annotations

from flask import Blueprint, redirect, render_template
from werkzeug import Response

from pwa_app.context import context
from pwa_app.overview import OVERVIEW, Overview

blueprint = Blueprint("dashboard", __name__)


@blueprint.get("/")
def start() -> Response:
    """To the dashboard."""
    return redirect("/app/dashboard")


@blueprint.get("/app/dashboard")
def dashboard() -> str:
    """Status, version, limits, cost and verdict; a call that failed shows as a stub."""
    overview = Overview(*context().load_all(OVERVIEW))
    return render_template("pwa/dashboard.html", overview=overview)
