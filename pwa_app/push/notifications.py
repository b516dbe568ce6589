"""The page about notifications and installing, which says what this browser can do."""

from __future__ import annotations

from flask import Blueprint, render_template

from platform_common.errors import PlatformError
from pwa_app.push.page import push

blueprint = Blueprint("notifications", __name__)


@blueprint.get("/app/notifications")
def notifications() -> str:
    """The page; `push.js` finds out the rest in the browser."""
    return render_template("pwa/notifications.html", subscribed=_subscribed())


def _subscribed() -> int | None:
    """How many browsers have subscribed; None when that cannot be read."""
    try:
        return len(push().subscriptions.all())
    except PlatformError:
        return None
