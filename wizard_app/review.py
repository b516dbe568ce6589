"""The end of the steps: all answers, and what is still missing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple, cast

from flask import Blueprint, Flask, Response, current_app, redirect, render_template, request
from werkzeug import Response as Redirect

from platform_common.sentence import Sentence
from wizard_app.applying import Applying, Outcome
from wizard_app.pages import wizard
from wizard_app.plan import build_plan, mark
from wizard_app.standing import Standing
from wizard_app.state import DONE, REVIEW
from wizard_app.steps.step import AnyStep

_NAME = "applying"
_CONFLICT = 409
blueprint = Blueprint("review", __name__)
# Under which heading a step's answers are; a step that is not here has one of its own.
_HEADINGS = {
    **dict.fromkeys(("system", "profile"), Sentence("Device")),
    "provider": Sentence("AI"),
    **dict.fromkeys(("channels", "ssh", "mesh-vpn", "tunnel"), Sentence("Access")),
    "backup": Sentence("Backup"),
}


class Given(NamedTuple):
    """What a step was answered, in rows of a label and a value."""

    step: AnyStep
    rows: list[tuple[Sentence, Any]]


class Section(NamedTuple):
    """Answers under one heading."""

    heading: Sentence
    steps: list[Given]


def install(app: Flask, applying: Applying) -> None:
    """Give `app` what sets its device up."""
    app.extensions[_NAME] = applying


def applying() -> Applying:
    """What sets up the device of the app that answers this request."""
    return cast("Applying", current_app.extensions[_NAME])


@blueprint.get("/wizard/review")
def review() -> str | Redirect:
    """All answers, with a way to change each."""
    if wizard().state.step == DONE:
        return redirect(f"/wizard/{DONE}")
    return _page(Outcome())


@blueprint.post("/wizard/review/apply")
def apply() -> Response | Redirect:
    """Set the device up: to the last page, or the review page again with what is wrong."""
    outcome = applying().apply(request.form.get("plan", ""))
    if outcome.done:
        return redirect(f"/wizard/{DONE}")
    status = _CONFLICT if outcome.busy or outcome.changed else 200
    return Response(_page(outcome), status)


def _page(outcome: Outcome) -> str:
    here = wizard()
    standing = here.standing()
    plan = build_plan(standing)
    return render_template(
        "wizard/review.html",
        sections=list(_sections(standing)),
        lacks=standing.lacks(),
        lost=any(standing.lost()),
        problems=standing.machine.problems,
        flash=here.flash.take(),
        back=here.before(REVIEW),
        file=here.file,
        count=here.count,
        outcome=outcome,
        plan=plan,
        mark=mark(plan),
    )


@blueprint.get("/wizard/done")
def done() -> str | Redirect:
    """The end; until it is reached, the step that is."""
    state = wizard().state
    if state.step != DONE:
        return redirect(f"/wizard/{state.step}")
    return render_template("wizard/done.html", completed_at=state.completed_at)


def _sections(standing: Standing) -> Iterator[Section]:
    def heading(step: AnyStep) -> Sentence:
        return _HEADINGS.get(step.slug, step.short)

    for words, steps in groupby(standing.steps.values(), heading):
        yield Section(words, [Given(step, _rows(standing, step)) for step in steps])


def _rows(standing: Standing, step: AnyStep) -> list[tuple[Sentence, Any]]:
    if standing.answer(step) is None:
        return [(step.short, Sentence("Not answered yet"))]
    return standing.summary(step)
