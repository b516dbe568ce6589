"""A tenth step, with something to do: nothing but the list of steps knows of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from platform_common.sentence import Sentence
from tests.support.small_steps import ColourAnswer, ColourStep
from tests.support.wizard_states import ANSWERS
from tests.wizard_app.conftest import MakeWizard
from wizard_app.actions import Phase, Planned, RunCommand, write
from wizard_app.settings import COMMANDS
from wizard_app.steps import STEPS
from wizard_app.steps.step import Question


class PaintStep(ColourStep):
    """Asks for a colour, and paints the device with it."""

    def summary(self, answer: ColourAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        yield Sentence("Colour"), answer.colour

    def actions(self, answer: ColourAnswer, asked: Question) -> Iterable[Planned]:
        yield Phase.SELECTION, write("/etc/platform/active-colour", answer.colour)
        yield Phase.SYSTEM, RunCommand(("paint", "--", answer.colour), 5.0)


def _answered(client: FlaskClient) -> FlaskClient:
    for slug, form in ANSWERS.items():
        assert client.post(f"/wizard/{slug}", data=form).status_code == 302
    return client


def test_its_answer_is_needed_shown_planned_and_applied(wizard: MakeWizard, out: Path) -> None:
    client = _answered(wizard(steps=(*STEPS, PaintStep())))
    without = client.get("/wizard/review").text
    assert "/wizard/colour?return=review" in without
    assert client.post("/wizard/review/apply").status_code == 200
    assert not (out / "etc/hostname").exists()
    leads = client.post("/wizard/colour", data={"colour": "green", "return": "review"}).location
    assert leads == "/wizard/review"
    page = client.get("/wizard/review").text
    assert "active-colour" in page
    assert "paint -- green" in page
    assert client.post("/wizard/review/apply").location == "/wizard/done"
    assert (out / "etc/platform/active-colour").read_text() == "green\n"
    # In its phase, before what comes later in the plan.
    commands = (out / COMMANDS).read_text()
    assert commands.index('"paint"') < commands.index('"tailscale"')
    assert "green" in client.get("/wizard/record.json").text
