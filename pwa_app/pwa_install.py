"""For installing the dashboard as an app: webmanifest, service worker, offline page."""

from __future__ import annotations

import hashlib
import json
from typing import cast

from flask import Blueprint, Response, current_app, render_template

from platform_common.message import Sentence
from platform_common.web.assets import Assets
from platform_common.web.factory import device_name, request_language, translate

_START = "/app/dashboard"
_OFFLINE = "/offline"
_WORKER = "sw.js"
# The files of the offline page.
_OFFLINE_FILES = ("style.css", "app.js", "icon.svg")
_ICONS = (
    ("icon.svg", "any", "image/svg+xml", "any"),
    ("icon-192.png", "192x192", "image/png", "any"),
    ("icon-512.png", "512x512", "image/png", "any"),
    ("icon-maskable-512.png", "512x512", "image/png", "maskable"),
)
_SHORTCUTS = (
    (Sentence("Logs"), "/app/logs"),
    (Sentence("Keys"), "/app/keys"),
    (Sentence("System"), "/app/system"),
)
_GROUND = "#f6f7f9"
_ACCENT = "#1f5fd1"

blueprint = Blueprint("installing", __name__)


@blueprint.get("/manifest.webmanifest")
def webmanifest() -> Response:
    """Return what a browser needs to install the dashboard."""
    device = device_name()
    members = {
        "id": _START,
        "name": translate(Sentence("{name} dashboard", name=device)),
        "short_name": device,
        "description": translate(Sentence("The status of this device and what it costs.")),
        "lang": request_language().code,
        "start_url": _START,
        "scope": "/",
        "display": "standalone",
        "theme_color": _ACCENT,
        "background_color": _GROUND,
        "icons": [
            {"src": _assets().url(name), "sizes": sizes, "type": kind, "purpose": purpose}
            for name, sizes, kind, purpose in _ICONS
        ],
        "shortcuts": [{"name": translate(name), "url": url} for name, url in _SHORTCUTS],
    }
    response = Response(
        json.dumps(members, indent=2) + "\n", content_type="application/manifest+json"
    )
    response.headers["Cache-Control"] = "no-cache"
    return response


@blueprint.get("/sw.js")
def service_worker() -> Response:
    """Return the service worker, preceded by facts about this device and version."""
    offline_page = render_template("pwa/offline.html")
    assets = _assets()
    built = {
        # Anything that would change a cached page changes the version.
        "version": hashlib.sha256(f"{assets.tag}{offline_page}".encode()).hexdigest()[:16],
        "offline": _OFFLINE,
        "files": [assets.url(name) for name in _OFFLINE_FILES],
        "dashboard": _START,
        "icon": assets.url("icon-192.png"),
        "title": device_name(),
        "body": translate(Sentence("This device has news for you.")),
    }
    # ASCII JSON has the same meaning in JavaScript.
    head = f'"use strict";\nconst BUILT = {json.dumps(built)};\n'
    script = head.encode("ascii") + assets.files[_WORKER].data
    response = Response(script, content_type="text/javascript; charset=utf-8")
    response.headers["Cache-Control"] = "no-cache"
    return response


@blueprint.get(_OFFLINE)
def offline() -> str:
    """Return the page that the service worker shows when the device does not answer."""
    return render_template("pwa/offline.html")


def _assets() -> Assets:
    return cast("Assets", current_app.extensions["assets"])
