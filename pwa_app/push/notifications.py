"""The page about notifications and installation, which says what the browser supports."""

from __future__ import annotations

from flask import Blueprint, render_template

from platform_common.errors import PlatformError
from pwa_app.push.page import push

blueprint = Blueprint("notifications", __name__)


@blueprint.get("/app/notifications")
def notifications() -> str:
    """Show the page; `push.js` checks the rest in the browser."""
    return render_template("pwa/notifications.html", subscribed=_subscribed())


def _subscribed() -> int | None:
    """The number of subscribed browsers; None if that cannot be read."""
    try:
        return len(push().subscriptions.all())
    except PlatformError:
        return None
