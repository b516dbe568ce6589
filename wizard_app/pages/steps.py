"""The steps' pages: one pair of routes for all of them."""

from __future__ import annotations

from flask import Blueprint, Response, redirect, render_template, request
from werkzeug import Response as Redirect

from wizard_app.context import wizard
from wizard_app.setup.state import DONE, REVIEW
from wizard_app.setup.steps.base import Form
from wizard_app.step_page import Page
from wizard_app.wizard import RETURN, Wizard

blueprint = Blueprint("wizard", __name__)


@blueprint.get("/")
@blueprint.get("/wizard")
def start() -> Redirect:
    """Redirect to the current step."""
    return redirect(f"/wizard/{wizard().state.step}")


@blueprint.get("/wizard/<step:slug>")
def step(slug: str) -> Response | Redirect:
    """A step's page."""
    here = wizard()
    found = here.steps[slug]
    if (elsewhere := _elsewhere(here)) is not None:
        return elsewhere
    return _shown(here, here.page(found), returns=request.args.get(RETURN) == REVIEW)


@blueprint.post("/wizard/<step:slug>")
def answer(slug: str) -> Response | Redirect:
    """Store a step's answer and go to the next step, or show the page with what is wrong."""
    here = wizard()
    found = here.steps[slug]
    if (elsewhere := _elsewhere(here)) is not None:
        return elsewhere
    files = {name: file.stream.read() for name, file in request.files.items()}
    form = Form(dict(request.form.lists()), files)
    outcome = here.submit(found, form)
    returns = form.get(RETURN) == REVIEW
    if isinstance(outcome, Page):
        return _shown(here, outcome, returns=returns)
    onward = f"?{RETURN}={REVIEW}" if returns and outcome in here.steps else ""
    return redirect(f"/wizard/{outcome}{onward}")


def _elsewhere(here: Wizard) -> Redirect | None:
    """Where a step redirects while setup runs, and after it."""
    if here.state.step == DONE:
        return redirect(f"/wizard/{DONE}")
    return redirect(f"/wizard/{REVIEW}") if here.settled else None


def _shown(here: Wizard, page: Page, *, returns: bool) -> Response:
    slug = page.step.slug
    before = here.before(slug)
    body = render_template(
        page.step.template,
        page=page,
        number=here.number(slug),
        count=here.count,
        back=REVIEW if returns else before,
        returns=returns,
        answered=any(here.snapshot().answered()),
        flash=here.flash.take(),
        file=here.file,
    )
    return Response(body, page.status, content_type="text/html; charset=utf-8")
