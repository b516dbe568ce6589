"""Error pages: what happened and what to do, but never the text of an exception."""

from __future__ import annotations

import secrets

from flask import Flask, Response, current_app, render_template, request
from msgspec import Struct
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from platform_common.message import Sentence
from platform_common.web.traceback_summary import places


class Problem(Struct, frozen=True):
    """The texts of an error page."""

    title: Sentence
    what: Sentence
    todo: Sentence


_UNKNOWN = Problem(
    Sentence("This did not work"),
    Sentence("This device could not answer the request."),
    Sentence("Go back and try again."),
)
_PROBLEMS = {
    400: Problem(
        Sentence("This request could not be understood"),
        Sentence("This device could not read what your browser sent."),
        Sentence("Go back, reload the page and try again."),
    ),
    403: Problem(
        Sentence("This request came from another site"),
        Sentence("A page on another website sent this request, so nothing was done."),
        Sentence("Open this page directly and do it here."),
    ),
    404: Problem(
        Sentence("There is no such page"),
        Sentence("There is nothing at this address."),
        Sentence("Check the address, or go to the start page."),
    ),
    405: Problem(
        Sentence("You cannot do that here"),
        Sentence("This address does not accept that kind of request."),
        Sentence("Go back and use the buttons on the page."),
    ),
    413: Problem(
        Sentence("You sent too much at once"),
        Sentence("Your browser sent more than this page accepts."),
        Sentence("Go back and send less."),
    ),
    415: Problem(
        Sentence("This page cannot use that type of content"),
        Sentence("This address expects another type of content."),
        Sentence("Reload the page and try again."),
    ),
    421: Problem(
        Sentence("This device does not know that name"),
        Sentence("The device does not answer to the name in the address."),
        Sentence("Open the device by its address, such as 192.168.1.20, or by its .local name."),
    ),
    429: Problem(
        Sentence("Too many requests"),
        Sentence("Too many requests came from your address."),
        Sentence("Wait a minute, then try again."),
    ),
    500: Problem(
        Sentence("Sorry, there is a problem"),
        Sentence("Something went wrong on this device. This page shows nothing that you sent."),
        Sentence("Try again. If it happens again, look for the number below in the log."),
    ),
    503: Problem(
        Sentence("Not ready"),
        Sentence("The device is too busy to answer."),
        Sentence("Try again in a few seconds."),
    ),
    507: Problem(
        Sentence("There is no room left"),
        Sentence("The device cannot store any more of these."),
        Sentence("Remove some first."),
    ),
}


# If even the error page cannot be rendered.
_PLAIN = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    '<h1>{title}</h1><p>{number}</p><p><a href="/">Go to the start page</a></p></html>'
)


def install(app: Flask) -> None:
    """Answer every error of `app` with a page."""
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _failure)


def error_page(
    status: int,
    *,
    what: Sentence | None = None,
    todo: Sentence | None = None,
    number: str = "",
    **more: object,
) -> Response:
    """The page for `status`; `what` and `todo` replace its usual texts.

    `more` are further variables of the template.
    """
    usual = _PROBLEMS.get(status, _UNKNOWN)
    problem = Problem(usual.title, what or usual.what, todo or usual.todo)
    try:
        body = render_template("error.html", status=status, problem=problem, number=number, **more)
    except Exception as error:  # noqa: BLE001 - the last page that there is
        current_app.logger.error(  # noqa: TRY400 - a traceback may hold what was sent
            "no error page: %s in %s", type(error).__name__, places(error)
        )
        body = _PLAIN.format(title=usual.title, number=number)
    return Response(body, status, content_type="text/html; charset=utf-8")


def _http_error(error: HTTPException) -> Response | HTTPException:
    status = error.code or 500
    if error.response is not None or status < 400:  # For example, a redirect by the router.
        return error
    page = error_page(status)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        page.allow.update(error.valid_methods)
    return page


def _failure(error: Exception) -> Response:
    """Any other exception: log it under a number that the page shows."""
    number = secrets.token_hex(4)
    current_app.logger.error(
        "problem %s: %s on %s in %s", number, type(error).__name__, request.endpoint, places(error)
    )
    return error_page(500, number=number)
