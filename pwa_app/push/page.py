"""Web Push: the page about it, the device's public key, and subscribing and unsubscribing."""

from __future__ import annotations

import math
from typing import NamedTuple, cast

from flask import Blueprint, Flask, Response, current_app, render_template, request
from werkzeug.exceptions import RequestEntityTooLarge

from platform_common.errors import PlatformError
from platform_common.formats.decode import DecodingError
from platform_common.message import Sentence
from platform_common.plain_text import one_line
from platform_common.web.errors import error_page
from platform_common.web.factory import translate
from platform_common.web.rate_limit import RateLimit
from pwa_app.push import subscriptions
from pwa_app.push.subscriptions import FullError, Subscriptions
from pwa_app.push.vapid import PushKey
from pwa_app.settings import PwaSettings

_NAME = "pwa_app.push.page"
_MOST_A_MINUTE = 10
_MINUTE_S = 60

blueprint = Blueprint("push", __name__)


class Push(NamedTuple):
    """The collaborators of these pages, beside the context."""

    key: PushKey
    subscriptions: Subscriptions
    rate: RateLimit


def install(app: Flask, settings: PwaSettings) -> None:
    """Register the key and the subscriptions with `app`."""
    folder = settings.data_dir
    app.extensions[_NAME] = Push(
        PushKey(folder), Subscriptions(folder), RateLimit(_MOST_A_MINUTE, _MINUTE_S)
    )


def push() -> Push:
    """The collaborators of the app that answers this request."""
    return cast("Push", current_app.extensions[_NAME])


@blueprint.get("/app/notifications")
def notifications() -> str:
    """The page about notifications and installing; `push.js` finds out what the browser can do."""
    try:
        subscribed = len(push().subscriptions.all())
    except PlatformError:
        subscribed = None
    return render_template("pwa/notifications.html", subscribed=subscribed)


@blueprint.get("/app/push/vapid-public")
def vapid_public() -> Response:
    """Return the public key; empty if push is off."""
    return _text(200, push().key.public())


@blueprint.post("/app/push/subscribe")
def subscribe() -> Response:
    """Store a browser's subscription."""
    body = _body()
    if isinstance(body, Response):
        return body
    try:
        push().subscriptions.add(subscriptions.parse(body))
    except DecodingError as error:
        return _text(400, one_line(error.message))
    except FullError:
        return _text(
            507, Sentence("This device cannot store any more subscriptions. Remove some first.")
        )
    except PlatformError as error:
        return _not_written(error)
    return _text(201, "ok")


@blueprint.post("/app/push/unsubscribe")
def unsubscribe() -> Response:
    """Delete a browser's subscription, if there is one."""
    body = _body()
    if isinstance(body, Response):
        return body
    try:
        push().subscriptions.remove(subscriptions.parse_endpoint(body))
    except DecodingError as error:
        return _text(400, one_line(error.message))
    except PlatformError as error:
        return _not_written(error)
    return _text(200, "ok")


def _body() -> bytes | Response:
    """The JSON of the request, or an error response: not JSON, too large, too frequent."""
    if request.mimetype != "application/json":
        return _text(415, Sentence("Send the subscription as application/json."))
    wait_s = push().rate.wait_s(request.remote_addr or "")
    if wait_s:
        refused = _text(429, Sentence("Too many requests came from your address. Wait a minute."))
        refused.headers["Retry-After"] = str(math.ceil(wait_s))
        return refused
    request.max_content_length = subscriptions.BODY_LIMIT_BYTES
    try:
        return request.get_data(cache=False)
    except RequestEntityTooLarge:
        return _text(413, Sentence("A subscription can be up to 16 KiB."))


def _text(status: int, said: Sentence | str) -> Response:
    text = translate(said) if isinstance(said, Sentence) else said
    return Response(text, status, content_type="text/plain; charset=utf-8")


def _not_written(error: PlatformError) -> Response:
    # Without the endpoint, because anyone who knows it can send messages to the browser.
    current_app.logger.error("a push subscription could not be changed: %s", error.message)
    return error_page(
        500,
        what=Sentence("This device could not write the subscription to its disk."),
        todo=Sentence("Check that the disk has free space and can be written to, then try again."),
    )
