"""The review page: all answers, the changes that setup makes, and its progress."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple, cast

from flask import Blueprint, Flask, Response, current_app, redirect, render_template, request
from werkzeug import Response as Redirect

from platform_common.clock import local_time
from platform_common.message import Sentence, quoted
from platform_common.web.factory import device_name
from wizard_app.apply_job import ApplyJob, Outcome
from wizard_app.context import wizard
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
# The heading for each step's answers; other steps have their own.
_HEADINGS = {
    **dict.fromkeys(("system", "profile"), Sentence("Device")),
    "provider": Sentence("AI"),
    **dict.fromkeys(("channels", "ssh", "mesh-vpn", "tunnel"), Sentence("Access")),
    "backup": Sentence("Backup"),
}


class Given(NamedTuple):
    """The answer to a step, as rows of a label and a value."""

    step: AnyStep
    rows: list[tuple[Sentence, Any]]


class Section(NamedTuple):
    """Answers under one heading."""

    heading: Sentence
    steps: list[Given]


class Stopped(NamedTuple):
    """Why the last attempt did not finish: it failed, or was interrupted at some time.

    `action` is the failed one if it is still in the plan; otherwise `what` names it.
    """

    failed: bool
    action: Action | None = None
    what: Sentence | None = None
    why: Sentence | None = None
    advice: Sentence | None = None
    at: datetime | None = None


def install(app: Flask, applying: ApplyJob) -> None:
    """Register the job that sets up the device with `app`."""
    app.extensions[_NAME] = applying


def applying() -> ApplyJob:
    """The setup job of the app that answers this request."""
    return cast("ApplyJob", current_app.extensions[_NAME])


@blueprint.get("/wizard/review")
def review() -> Response | Redirect:
    """All answers, with links to change them; while setup runs, its progress."""
    if wizard().state.step == DONE:
        return redirect(f"/wizard/{DONE}")
    return _page(Outcome())


@blueprint.post("/wizard/review/apply")
def apply() -> Response | Redirect:
    """Set up the device; redirect to the last page, or show the review page with the reason."""
    outcome = applying().apply(request.form.get("plan", ""))
    if outcome.done:
        return redirect(f"/wizard/{DONE}")
    return _page(outcome)


@blueprint.get("/wizard/apply/status")
def status() -> Response:
    """The progress of setup, as a part of a page; or the next address if it is not running."""
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
    """The template's variables for the progress of the running `plan`."""
    found = progress(plan, applying().progress.values(), running=True)
    return {"found": found, "going": True, "name": _name(snapshot)}


def _stopped(snapshot: Snapshot, found: Progress) -> Stopped | None:
    """Why the last attempt of this setup stopped, if it did."""
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
    """The name that the device will get."""
    answer = snapshot.state.answers.of(SystemAnswer)
    return device_name() if answer is None else answer.hostname


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
