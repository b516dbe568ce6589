"""The wizard's course: where it stands, where each form leads, and what stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.support.small_steps import WORD
from tests.support.wizard_files import GOOD
from tests.support.wizard_secrets import files
from tests.wizard_app.conftest import SMALL, MakeWizard
from wizard_app.steps import STEPS

SLUGS = [step.slug for step in STEPS]


def _step(state_file: Path) -> str:
    return str(json.loads(state_file.read_bytes())["step"])


@pytest.mark.parametrize("address", ["/", "/wizard"])
def test_the_start_leads_to_the_step_that_was_reached(small: FlaskClient, address: str) -> None:
    for step, form in (("colour", {"colour": "red"}), ("word", {}), ("review", None)):
        start = small.get(address)
        assert (start.status_code, start.location) == (302, f"/wizard/{step}")
        if form is not None:
            small.post(f"/wizard/{step}", data=form)


def test_an_answer_leads_to_the_next_step_and_not_back_behind_what_was_reached(
    small: FlaskClient, state_file: Path
) -> None:
    assert small.post("/wizard/colour", data={"colour": "red"}).location == "/wizard/word"
    assert small.post("/wizard/word").location == "/wizard/review"
    assert small.post("/wizard/colour", data={"colour": "blue"}).location == "/wizard/word"
    assert _step(state_file) == "review"


def test_ses_11_a_later_step_can_be_answered_first(client: FlaskClient, state_file: Path) -> None:
    assert client.post("/wizard/mesh-vpn", data={"skip": "1"}).location == "/wizard/tunnel"
    assert _step(state_file) == "tunnel"
    assert client.get("/wizard").location == "/wizard/tunnel"
    review = client.get("/wizard/review").text
    assert "Device: Not answered yet" in review
    assert "Private network: Not answered yet" not in review


def test_what_was_answered_fills_its_page_and_a_refused_form_fills_it_as_typed(
    small: FlaskClient, state_file: Path
) -> None:
    small.post("/wizard/word", data={"word": WORD})
    refused = small.post("/wizard/word", data={"word": "bad", "other": "typed"})
    assert refused.status_code == 200
    assert '<div class="error">' in refused.text
    assert "Enter another word" in refused.text
    assert json.loads(state_file.read_bytes())["answers"] == {"has_word": True}


def test_a_secret_is_in_no_page_and_not_in_the_file(small: FlaskClient, state_file: Path) -> None:
    small.post("/wizard/colour", data={"colour": "red"})
    answers = [small.post("/wizard/word", data={"word": WORD})]
    assert "Entered, kept in memory only" in small.get("/wizard/review").text
    pages = ("colour", "word", "review", "answers.json", "import")
    answers += [small.get(f"/wizard/{page}") for page in pages]
    # Sent where it is no secret: the page is about another step.
    answers.append(small.post("/wizard/word", data={"word": WORD, "revision": "x.y"}))
    assert all(WORD not in answer.text for answer in answers)
    assert not any(WORD.encode() in data for data in files(state_file.parent))
    # It goes when its step is answered without one.
    small.post("/wizard/word")
    assert "Entered, kept in memory only" not in small.get("/wizard/review").text


def test_a_change_from_the_review_page_leads_back_there(small: FlaskClient) -> None:
    small.post("/wizard/colour", data={"colour": "red"})
    small.post("/wizard/word")
    back = '<input type="hidden" name="return" value="review">'
    page = small.get("/wizard/colour?return=review").text
    assert back in page
    assert 'href="/wizard/review"' in page
    assert back in small.post("/wizard/colour", data={"colour": "", "return": "review"}).text
    change = {"colour": "blue", "return": "review"}
    assert small.post("/wizard/colour", data=change).location == "/wizard/review"


def test_ses_12_a_change_leads_first_to_an_answer_that_it_made_unfit(small: FlaskClient) -> None:
    small.post("/wizard/colour", data={"colour": "red"})
    small.post("/wizard/word")
    change = {"colour": "black", "return": "review"}
    assert small.post("/wizard/colour", data=change).location == "/wizard/word?return=review"
    page = small.get("/wizard/word?return=review").text
    assert "Black takes no word" in page
    assert small.post("/wizard/word", data={"return": "review"}).location == "/wizard/review"


def test_an_answer_unfit_before_does_not_stand_in_the_way_of_a_change(small: FlaskClient) -> None:
    small.post("/wizard/colour", data={"colour": "mauve"})
    assert small.post("/wizard/word", data={"return": "review"}).location == "/wizard/review"


@pytest.mark.parametrize(
    "target", ["//evil.example", r"\\evil.example", "https://evil.example", "done", "Review", ""]
)
def test_http_20_a_form_leads_to_the_next_step_or_review(small: FlaskClient, target: str) -> None:
    for address in ("/wizard/colour", f"/wizard/colour?return={target}"):
        answer = small.post(address, data={"colour": "red", "return": target})
        assert answer.location == "/wizard/word"
        assert "evil" not in small.get(address).text


def test_after_the_end_all_forms_lead_to_the_last(wizard: MakeWizard, state_file: Path) -> None:
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
        assert "a restart of the wizard forgets them" in text
    again.post("/wizard/word", data={"word": WORD})
    for page in ("colour", "word", "review"):
        assert "enter again" not in again.get(f"/wizard/{page}").text
