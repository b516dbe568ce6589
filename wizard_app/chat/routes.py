"""The chat's routes: the history, and sending a message.

A message is answered in one of three ways. A browser without JavaScript sends `nojs=1` and is
redirected to the page. Others get the messages as a part of a page; or, with
`Accept: text/x-chat-stream`, the answer while it arrives: its text as `text/plain`, then one
U+0000, then that part of a page.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from typing import cast

from flask import (
    Blueprint,
    Flask,
    Response,
    copy_current_request_context,
    current_app,
    redirect,
    render_template,
    request,
)
from werkzeug import Response as Redirect
from werkzeug.exceptions import RequestEntityTooLarge

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.plain_text import with_line_feeds, without_controls
from platform_common.web.factory import device_name
from platform_common.web.flash import Flash
from wizard_app.chat import export
from wizard_app.chat.conversation import Chat, Conversation, ShownTurns
from wizard_app.chat.gateway import health
from wizard_app.chat.view import shown
from wizard_app.context import wizard
from wizard_app.setup.steps.profile import ProfileAnswer

LONGEST_BYTES = 32 << 10
STREAM = "text/x-chat-stream"
_NAME = "chat"
_TOO_LARGE = 413
_HTML = "text/html; charset=utf-8"
# A client that reads nothing for this long is gone; its place becomes free.
_PATIENCE_S = 60
# The page does not wait longer for the state of a slow gateway.
_HEALTH_LIMIT_S = 1.0
_GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR | select.POLLNVAL
_EMPTY = Sentence("Write a message first")
_TOO_LONG = Sentence("A message can be up to 32 KiB. Shorten yours, or send it in parts.")

blueprint = Blueprint("chat", __name__)


def install(app: Flask, chat: Chat) -> None:
    """Register the chat with `app`."""
    app.extensions[_NAME] = chat


def conversation() -> Conversation:
    """The conversation of this request."""
    chat = cast("Chat", current_app.extensions[_NAME])
    return chat.with_profile(wizard().state.answers.of(ProfileAnswer))


@blueprint.get("/chat")
def page() -> Response:
    """The history and a field for a message."""
    here = conversation()
    return _page(here, here.said())


@blueprint.post("/chat/message")
def message() -> Response | Redirect:
    """Send a message; the module docstring describes the answer."""
    here = conversation()
    try:
        text = with_line_feeds(request.form.get("message", "")).strip()
        by_itself = request.form.get("nojs") == "1"
    except RequestEntityTooLarge:
        return _again(here, _TOO_LONG, "", _TOO_LARGE)
    whole = text if by_itself else ""
    if not without_controls(text).strip():
        return _again(here, _EMPTY, whole, 200, whole_page=by_itself)
    if len(text.encode("utf-8", "replace")) > LONGEST_BYTES:
        return _again(here, _TOO_LONG, whole, _TOO_LARGE, whole_page=by_itself)
    if not by_itself and _wants_stream():
        return _streamed(here, text)
    sent = here.message(text)
    for _ in sent.pieces():
        pass
    said = sent.said()
    if not by_itself:
        return Response(_messages(said), content_type=_HTML)
    return _page(here, said) if said.problem else redirect("/chat#latest", 303)


@blueprint.get("/chat/gateway")
def gateway() -> str:
    """Whether the gateway is up, as a part of a page."""
    here = conversation()
    found = None if here.profile is None else health(here.profile)
    return render_template("wizard/_gateway.html", health=found, why_nobody=here.why_nobody)


@blueprint.get("/chat/export.md")
def export_for_people() -> Response | Redirect:
    """Export the history for people."""
    return _exported("md")


@blueprint.get("/chat/export.jsonl")
def export_for_programs() -> Response | Redirect:
    """Export the history as it is stored."""
    return _exported("jsonl")


@blueprint.get("/chat/clear")
def ask_to_clear() -> Response:
    """Ask before deleting the history."""
    return Response(render_template("wizard/chat_clear.html", problem=None), content_type=_HTML)


@blueprint.post("/chat/clear")
def clear() -> Response | Redirect:
    """Delete the history."""
    # Parsing the form first refuses one that is too large before anything is deleted.
    request.get_data(parse_form_data=True)
    try:
        conversation().history.clear()
    except PlatformError as error:
        problem = Sentence("The history could not be cleared: {reason}", reason=error.said)
        body = render_template("wizard/chat_clear.html", problem=problem)
        return Response(body, content_type=_HTML)
    wizard().flash.put(Flash(Sentence("The history has been cleared."), good=True))
    return redirect("/chat")


def _exported(kind: str) -> Response | Redirect:
    try:
        parts = export.opened(conversation().history, kind)
    except PlatformError as error:
        why = Sentence("The history cannot be read: {reason}", reason=error.said)
        wizard().flash.put(Flash(why, good=False))
        return redirect("/chat")
    answer = Response(parts, content_type=export.CONTENT_TYPES[kind])
    name = export.file_name(device_name(), kind)
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _page(
    here: Conversation,
    said: ShownTurns,
    *,
    error: Sentence | None = None,
    typed: str = "",
    status: int = 200,
) -> Response:
    body = render_template(
        "wizard/chat.html",
        **_context(said, error),
        profile=here.profile,
        why_nobody=here.why_nobody,
        health=here.profile and health(here.profile, limit_s=_HEALTH_LIMIT_S),
        typed=typed,
        flash=wizard().flash.take(),
        back=wizard().state.step,
    )
    return Response(body, status, content_type=_HTML)


def _again(
    here: Conversation, error: Sentence, typed: str, status: int, *, whole_page: bool = False
) -> Response:
    """The page or part again, with the reason why a message was not sent."""
    if whole_page:
        return _page(here, here.said(), error=error, typed=typed, status=status)
    return Response(_messages(here.said(), error), status, content_type=_HTML)


def _messages(said: ShownTurns, error: Sentence | None = None) -> str:
    return render_template("wizard/_messages.html", **_context(said, error))


def _context(said: ShownTurns, error: Sentence | None) -> dict[str, object]:
    return {"turns": shown(said.turns), "problem": said.problem, "error": error}


def _wants_stream() -> bool:
    return any(kind == STREAM and quality > 0 for kind, quality in request.accept_mimetypes)


def _streamed(here: Conversation, text: str) -> Response:
    sent = here.message(text, streaming=True, is_wanted=_is_read())
    # `_messages` needs the request context, which is gone while the answer is streamed.
    messages = copy_current_request_context(_messages)

    def parts() -> Iterator[str]:
        # An empty piece sends the headers: the client knows that the message was accepted.
        yield ""
        yield from sent.pieces()
        yield "\x00"
        yield messages(sent.said())

    answer = Response(parts(), content_type="text/plain; charset=utf-8")
    # A proxy that buffers would make streaming useless.
    answer.headers["X-Accel-Buffering"] = "no"
    return answer


def _is_read() -> Callable[[], bool] | None:
    """A function that says whether the client is still connected, if that can be known."""
    connection = request.environ.get("gunicorn.socket")
    if connection is None:
        return None
    connection.settimeout(_PATIENCE_S)
    watch = select.poll()
    watch.register(connection, select.POLLRDHUP)
    return lambda: not any(event & _GONE for _, event in watch.poll(0))
