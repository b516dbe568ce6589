"""The system pages: what runs here, what this browser prefers, help, the diagnostics archive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import cast

from flask import Blueprint, Response, current_app, render_template, request

from pwa_app import diagnostics
from pwa_app.context import Context, context
from pwa_app.overview import STATUS, VERSION, gateway_state

blueprint = Blueprint("system", __name__)


@blueprint.get("/app/system")
def system() -> str:
    """What runs on the device, and the way to everything that is not opened every day."""
    status, version = context().load_all((STATUS, VERSION))
    return render_template(
        "pwa/system.html",
        status=status,
        state=gateway_state(status.value),
        running=version,
        here=request.host_url.rstrip("/"),
    )


@blueprint.get("/app/system/diagnostics")
def contents() -> str:
    """What the archive holds and what it leaves out, before anybody downloads it."""
    return render_template("pwa/diagnostics.html", diagnostics=diagnostics)


@blueprint.get("/app/system/diagnostics.zip")
def download() -> Response:
    """The archive; who asks while one is made gets the same."""
    ours = context()
    name = cast("Callable[[], str]", current_app.jinja_env.globals["device_name"])
    made = ours.flights.join("diagnostics.zip", partial(_made, ours, name())).result()
    response = Response(made.data, content_type="application/zip")
    response.headers.set("Content-Disposition", "attachment", filename=made.name)
    return response


def _made(ours: Context, device: str) -> diagnostics.Archive:
    return diagnostics.archive(ours, device, datetime.now(UTC))
