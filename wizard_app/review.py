"""The end of the steps: all answers, and what is still missing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from flask import Blueprint, redirect, render_template
from werkzeug import Response as Redirect

from platform_common.sentence import Sentence
from wizard_app.pages import wizard
from wizard_app.standing import Standing
from wizard_app.state import DONE, REVIEW
from wizard_app.steps.step import AnyStep

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


@blueprint.get("/wizard/review")
def review() -> str | Redirect:
    """All answers, with a way to change each."""
    here = wizard()
    standing = here.standing()
    if standing.state.step == DONE:
        return redirect(f"/wizard/{DONE}")
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
    answer = standing.answer(step)
    if answer is None:
        return [(step.short, Sentence("Not answered yet"))]
    return list(step.summary(answer, standing.asked(step)))
