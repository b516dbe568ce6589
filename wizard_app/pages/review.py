"""The end of the steps: all answers, what setting up will change, and how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple, cast

from flask import Blueprint, Flask, Response, current_app, redirect, render_template, request
from werkzeug import Response as Redirect

from platform_common.clock import local_time
from platform_common.message import Sentence, quoted
from platform_common.web.factory import called
from wizard_app.apply_job import Applying, Outcome
from wizard_app.pages.steps import wizard
from wizard_app.setup.apply.executor import AGAIN
from wizard_app.setup.apply.progress import Progress, progress
from wizard_app.setup.plan.actions import Action
from wizard_app.setup.plan.plan import Plan, build_plan, plan_digest
from wizard_app.setup.snapshot import Snapshot
from wizard_app.setup.state import DONE, REVIEW
from wizard_app.setup.steps.base import AnyStep
from wizard_app.setup.steps.system import SystemAnswer

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


class Stopped(NamedTuple):
    """Why the last try did not come to its end: it failed, or was interrupted at some time.

    `action` is the one that did not work, where it is in the plan still; else `what` tells.
    """

    failed: bool
    action: Action | None = None
    what: Sentence | None = None
    why: Sentence | None = None
    advice: Sentence | None = None
    at: datetime | None = None


def install(app: Flask, applying: Applying) -> None:
    """Give `app` what sets its device up."""
    app.extensions[_NAME] = applying


def applying() -> Applying:
    """What sets up the device of the app that answers this request."""
    return cast("Applying", current_app.extensions[_NAME])


@blueprint.get("/wizard/review")
def review() -> Response | Redirect:
    """All answers, with a way to change each; while they are applied, how far that is."""
    if wizard().state.step == DONE:
        return redirect(f"/wizard/{DONE}")
    return _page(Outcome())


@blueprint.post("/wizard/review/apply")
def apply() -> Response | Redirect:
    """Set the device up: to the last page, or the review page again with what is wrong."""
    outcome = applying().apply(request.form.get("plan", ""))
    if outcome.done:
        return redirect(f"/wizard/{DONE}")
    return _page(outcome)


@blueprint.get("/wizard/apply/status")
def status() -> Response:
    """How far setting up is, as a part of a page; or where to go on when nothing is under way."""
    snapshot, running = wizard().snapshot(), applying().running
    onward = ""
    if snapshot.state.step == DONE:
        onward = f"/wizard/{DONE}"
    elif running is None:
        onward = f"/wizard/{REVIEW}"
    return _html("_progress", **_going(snapshot, running or ()), onward=onward)


def _page(outcome: Outcome) -> Response:
    here = wizard()
    snapshot, running = here.snapshot(), applying().running
    code = _CONFLICT if outcome.busy or outcome.changed else 200
    if running is not None:
        return _html("applying", code, **_going(snapshot, running), outcome=outcome)
    plan = build_plan(snapshot)
    found = progress(plan, snapshot.tried.entries if snapshot.tried else ())
    return _html(
        "review",
        code,
        sections=list(_sections(snapshot)),
        lacks=snapshot.lacks(),
        lost=any(snapshot.lost()),
        problems=snapshot.machine.problems,
        flash=here.flash.take(),
        back=here.before(REVIEW),
        file=here.file,
        count=here.count,
        outcome=outcome,
        stopped=None if outcome.busy else _stopped(snapshot, found),
        found=found,
        fresh=progress(plan),
        going=False,
        name=_name(snapshot),
        digest=plan_digest(plan),
    )


def _going(snapshot: Snapshot, plan: Plan) -> dict[str, Any]:
    """What a page needs that tells how far `plan` is, which is being done."""
    found = progress(plan, applying().progress.values(), running=True)
    return {"found": found, "going": True, "name": _name(snapshot)}


def _stopped(snapshot: Snapshot, found: Progress) -> Stopped | None:
    """What the last try of this setup has to say, if there was one."""
    last, tried = applying().last, snapshot.tried
    entries = tried.entries if tried else ()
    failed = next((entry for entry in entries if entry.state == "failed"), None)
    row = found.of(failed.id) if failed else None
    action = row.action if row else None
    if last.why is not None:
        return Stopped(failed=True, action=action, what=last.what, why=last.why, advice=last.advice)
    if failed is not None:
        what, why = quoted(failed.what), quoted(failed.why)
        return Stopped(failed=True, action=action, what=what, why=why, advice=AGAIN)
    if tried is None:
        return None
    return Stopped(failed=False, at=local_time(max([tried.at, *(entry.at for entry in entries)])))


def _name(snapshot: Snapshot) -> str:
    """What the device is to be called."""
    answer = snapshot.state.answers.of(SystemAnswer)
    return called() if answer is None else answer.hostname


def _html(template: str, code: int = 200, **values: Any) -> Response:
    values.setdefault("onward", "")
    body = render_template(f"wizard/{template}.html", **values)
    return Response(body, code, content_type="text/html; charset=utf-8")


def _sections(snapshot: Snapshot) -> Iterator[Section]:
    def heading(step: AnyStep) -> Sentence:
        return _HEADINGS.get(step.slug, step.short)

    for words, steps in groupby(snapshot.steps.values(), heading):
        yield Section(words, [Given(step, _rows(snapshot, step)) for step in steps])


def _rows(snapshot: Snapshot, step: AnyStep) -> list[tuple[Sentence, Any]]:
    if snapshot.answer(step) is None:
        return [(step.short, Sentence("Not answered yet"))]
    return snapshot.summary(step)
