"""The flow of the wizard: its current step, where each form redirects, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.support.small_steps import WORD
from tests.support.wizard_files import GOOD
from tests.wizard_app.conftest import SMALL, MakeWizard
from tests.wizard_app.step_pages import StepPage
from wizard_app.setup.steps import STEPS

SLUGS = [step.slug for step in STEPS]


def _step(page: StepPage) -> str:
    return str(json.loads(page.state_file.read_bytes())["step"])


@pytest.mark.parametrize("address", ["/", "/wizard"])
def test_the_start_redirects_to_the_current_step(small: FlaskClient, address: str) -> None:
    for step, form in (("colour", {"colour": "red"}), ("word", {}), ("review", None)):
        start = small.get(address)
        assert (start.status_code, start.location) == (302, f"/wizard/{step}")
        if form is not None:
            small.post(f"/wizard/{step}", data=form)


def test_an_answer_leads_to_the_next_step_and_never_lowers_the_current_one(
    colour: StepPage, word: StepPage
) -> None:
    assert colour.accept({"colour": "red"}) == "/wizard/word"
    assert word.accept({}) == "/wizard/review"
    assert colour.accept({"colour": "blue"}) == "/wizard/word"
    assert _step(colour) == "review"


def test_ses_11_a_later_step_can_be_answered_first(client: FlaskClient, state_file: Path) -> None:
    page = StepPage(client, "mesh-vpn", state_file)
    assert page.accept({"skip": "1"}) == "/wizard/tunnel"
    assert _step(page) == "tunnel"
    assert client.get("/wizard").location == "/wizard/tunnel"
    assert "Device: Not answered yet" in page.review
    assert "Private network: Not answered yet" not in page.review


def test_a_refused_form_keeps_the_earlier_answer(word: StepPage) -> None:
    word.accept({"word": WORD})
    assert "Enter another word" in word.refuse({"word": "bad", "other": "typed"})
    assert word.stored == {"has_word": True}


def test_a_change_from_the_review_page_leads_back_there(colour: StepPage, word: StepPage) -> None:
    colour.accept({"colour": "red"})
    word.accept({})
    back = '<input type="hidden" name="return" value="review">'
    page = colour.client.get("/wizard/colour?return=review").text
    assert back in page
    assert 'href="/wizard/review"' in page
    assert back in colour.refuse({"colour": "", "return": "review"})
    assert colour.accept({"colour": "blue", "return": "review"}) == "/wizard/review"


def test_ses_12_a_change_leads_to_an_answer_that_it_made_invalid(
    colour: StepPage, word: StepPage
) -> None:
    colour.accept({"colour": "red"})
    word.accept({})
    assert colour.accept({"colour": "black", "return": "review"}) == "/wizard/word?return=review"
    assert "Black takes no word" in word.client.get("/wizard/word?return=review").text
    assert word.accept({"return": "review"}) == "/wizard/review"
    # An answer that was invalid before does not change where the form leads.
    colour.accept({"colour": "mauve"})
    assert word.accept({"return": "review"}) == "/wizard/review"


@pytest.mark.parametrize(
    "target", ["//evil.example", r"\\evil.example", "https://evil.example", "done", "Review", ""]
)
def test_http_20_a_form_leads_to_the_next_step_or_review(small: FlaskClient, target: str) -> None:
    for address in ("/wizard/colour", f"/wizard/colour?return={target}"):
        answer = small.post(address, data={"colour": "red", "return": target})
        assert answer.location == "/wizard/word"
        assert "evil" not in small.get(address).text


def test_after_the_end_every_address_redirects_to_the_last_page(
    wizard: MakeWizard, state_file: Path
) -> None:
    state_file.parent.mkdir(parents=True)
    ended = GOOD | {"step": "done", "completed_at": "2026-11-01T13:00:00Z"}
    state_file.write_text(json.dumps(ended))
    before = state_file.read_bytes()
    client = wizard()
    for slug in (*SLUGS, "review", "import", "answers.json"):
        assert client.get(f"/wizard/{slug}").location == "/wizard/done"
    for slug in (*SLUGS, "import"):
        form = {"hostname": "kitchen-agent", "timezone": "Europe/Berlin"}
        assert client.post(f"/wizard/{slug}", data=form).location == "/wizard/done"
    assert client.get("/").location == "/wizard/done"
    page = client.get("/wizard/done")
    assert page.status_code == 200
    assert "Setup is complete" in page.text
    assert state_file.read_bytes() == before


def test_ses_09_and_wiz_04_a_restart_keeps_the_step_and_the_answers(wizard: MakeWizard) -> None:
    first = wizard(steps=SMALL)
    first.post("/wizard/colour", data={"colour": "crimson"})
    first.post("/wizard/word", data={"word": WORD})
    again = wizard(steps=SMALL)
    assert again.get("/").location == "/wizard/review"
    assert "crimson" in again.get("/wizard/review").text
    for page in ("colour", "word", "review"):
        text = again.get(f"/wizard/{page}").text
        assert "Secret word – enter again" in text
        assert "They are lost when setup restarts" in text
    again.post("/wizard/word", data={"word": WORD})
    for page in ("colour", "word", "review"):
        assert "enter again" not in again.get(f"/wizard/{page}").text
