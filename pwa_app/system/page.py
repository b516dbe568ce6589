"""The system pages: installed versions, preferences, help, and the diagnostics archive."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from flask import Blueprint, Response, render_template, request

from platform_common.web.factory import device_name
from pwa_app.context import context
from pwa_app.overview import STATUS, VERSION, gateway_state
from pwa_app.system import diagnostics

blueprint = Blueprint("system", __name__)


@blueprint.get("/app/system")
def system() -> str:
    """Show what is installed, with links to rarely used pages."""
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
    """Show what the archive contains and what it leaves out, before it is downloaded."""
    return render_template("pwa/diagnostics.html", diagnostics=diagnostics)


@blueprint.get("/app/system/diagnostics.zip")
def download() -> Response:
    """Download the archive; concurrent requests share one."""
    ours = context()
    make = partial(diagnostics.archive, ours, device_name(), datetime.now(UTC))
    made = ours.single_flight.join("diagnostics.zip", make).result()
    response = Response(made.data, content_type="application/zip")
    response.headers.set("Content-Disposition", "attachment", filename=made.name)
    return response
