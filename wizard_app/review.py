"""The end of the steps: all answers, what is still missing, and taking them along."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from flask import Blueprint, redirect, render_template
from werkzeug import Response as Redirect

from platform_common.sentence import Sentence
from wizard_app.flow import Wizard
from wizard_app.pages import wizard
from wizard_app.state import DONE, REVIEW
from wizard_app.steps.step import AnyStep

blueprint = Blueprint("review", __name__)


class Section(NamedTuple):
    """A step on the review page: its answer in rows, and what it lacks."""

    step: AnyStep
    rows: list[tuple[Sentence, Any]]
    lacks: list[Sentence]


@blueprint.get("/wizard/review")
def review() -> str | Redirect:
    """All answers, with a way to change each."""
    here = wizard()
    if here.state.step == DONE:
        return redirect(f"/wizard/{DONE}")
    return render_template(
        "wizard/review.html",
        sections=list(_sections(here)),
        flash=here.flash.take(),
        back=here.before(REVIEW),
        file=here.file,
        count=here.count,
    )


@blueprint.get("/wizard/done")
def done() -> str | Redirect:
    """The end; until it is reached, the step that is."""
    here = wizard()
    if here.state.step != DONE:
        return redirect(f"/wizard/{here.state.step}")
    return render_template("wizard/done.html", completed_at=here.state.completed_at)


def _sections(here: Wizard) -> Iterator[Section]:
    machine = here.machine()
    lacks = list(here.lacks())
    for step in here.steps.values():
        asked = here.asked(step, machine)
        answer = asked.answers.of(step.answer_type)
        rows = [] if answer is None else list(step.summary(answer, asked))
        yield Section(step, rows, [lack.why for lack in lacks if lack.step is step])
