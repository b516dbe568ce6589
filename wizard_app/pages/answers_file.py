"""Pages that export and import setup files."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flask import Blueprint, Response, redirect, render_template, request
from werkzeug import Response as Redirect
from werkzeug.exceptions import RequestEntityTooLarge

from platform_common.message import Sentence
from platform_common.web.errors import error_page
from platform_common.web.factory import device_name
from platform_common.web.flash import Flash
from wizard_app.context import wizard
from wizard_app.setup import answers_file
from wizard_app.setup.state import DONE
from wizard_app.wizard import Refused, Wizard

blueprint = Blueprint("sharing", __name__)
# The size of the form around its file.
_AROUND_BYTES = 4 << 10


@blueprint.get("/wizard/answers.json")
def save() -> Response | Redirect:
    """Download the answers so far as a file without secrets."""
    here = wizard()
    if here.state.step == DONE:
        return redirect(f"/wizard/{DONE}")
    answers = here.state.answers
    name = answers.values.get("hostname") or device_name()
    file = re.sub(r"[^a-z0-9-]+", "-", str(name).lower())
    return Response(
        answers_file.render(answers, list(here.steps.values())),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="setup-{file}.json"'},
    )


@blueprint.get("/wizard/import")
def choose() -> Response | Redirect:
    """The form for a setup file, which the first page also has."""
    here = wizard()
    return redirect(f"/wizard/{DONE}") if here.state.step == DONE else _page(here, [])


@blueprint.post("/wizard/import")
def take() -> Response | Redirect:
    """Import the answers of a setup file: all or none."""
    here = wizard()
    if here.state.step == DONE:
        return redirect(f"/wizard/{DONE}")
    request.max_content_length = answers_file.LIMIT_BYTES + _AROUND_BYTES
    try:
        chosen = request.files.get("file")
    except RequestEntityTooLarge:
        return _too_large()
    data = chosen.stream.read() if chosen else b""
    if len(data) > answers_file.LIMIT_BYTES:
        return _too_large()
    if not data:
        return _page(here, [Sentence("Select a setup file")])
    file = answers_file.parse(data, list(here.steps.values()), here.snapshot().machine)
    if file.problems:
        return _page(here, file.problems)
    onward = here.take_over(file.answers, replace=request.form.get("replace") == "1")
    if isinstance(onward, Refused):
        return _page(here, [onward.why], onward.status)
    here.flash.put(Flash(Sentence("Answers imported: {count}", count=file.steps), good=True))
    return redirect(f"/wizard/{onward}")


def _page(here: Wizard, problems: Sequence[Sentence], status: int = 200) -> Response:
    body = render_template(
        "wizard/import.html",
        problems=problems,
        back=next(iter(here.steps)),
        answered=any(here.snapshot().answered()),
    )
    return Response(body, status, content_type="text/html; charset=utf-8")


def _too_large() -> Response:
    return error_page(
        413,
        what=Sentence("A setup file can be up to 256 KiB."),
        todo=Sentence("Select the file that you saved from the review page."),
    )
