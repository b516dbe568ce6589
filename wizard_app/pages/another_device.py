"""The page "Continue on another device": a launch link for one more browser."""

from __future__ import annotations

from flask import Blueprint, Response, redirect, render_template, request
from werkzeug import Response as Redirect

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.web.errors import error_page
from wizard_app.access.gate import current_gate
from wizard_app.access.request_info import asks_for_loopback
from wizard_app.access.sessions import new_token
from wizard_app.launch import qr_code
from wizard_app.setup.serving_file import launch_url

blueprint = Blueprint("another_device", __name__)


@blueprint.get("/wizard/another-device")
def back() -> Redirect:
    """Redirect a reload: the link was already shown, or has to be requested again."""
    return redirect("/wizard")


@blueprint.post("/wizard/another-device")
def share() -> Response:
    """Show a link for one other browser, as text and as a QR code."""
    token = ""
    if current_gate().is_locked:
        token = new_token()
        try:
            current_gate().tokens.write(token)
        except PlatformError as error:
            what = Sentence("A new link could not be created: {why}", why=error.message)
            return error_page(500, what=what, todo=Sentence("Check the disk, then try again."))
    url = launch_url(f"{request.scheme}://{request.host}", token)
    return Response(
        render_template(
            "wizard/another_device.html",
            url=url,
            code=qr_code.as_image(url),
            only_here=asks_for_loopback(),
        )
    )
