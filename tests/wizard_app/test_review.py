"""The review page: all answers, a way to change each, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree.ElementTree import Element

import html5lib
import pytest
from flask.testing import FlaskClient

from tests.support.markup import parse_errors
from tests.support.small_steps import WORD, ColourStep, WordStep
from tests.support.wizard_files import ANSWERS, GOOD
from tests.wizard_app.conftest import MakeWizard
from wizard_app.steps import STEPS


@pytest.fixture
def small(wizard: MakeWizard) -> FlaskClient:
    """A wizard of two small steps."""
    return wizard(steps=(ColourStep(), WordStep()))


def _review(client: FlaskClient) -> Element:
    page = client.get("/wizard/review")
    assert page.status_code == 200
    assert parse_errors(page.text) == []
    tree: Element = html5lib.parse(page.text, namespaceHTMLElements=False)
    return tree


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _rows(tree: Element) -> dict[str, str]:
    return {
        _text(label): _text(value)
        for rows in tree.iter("dl")
        for label, value in zip(rows.iter("dt"), rows.iter("dd"), strict=True)
    }


def _missing(tree: Element) -> dict[str, str]:
    """What is missing: its words, and where they lead."""
    return {
        _text(link): link.attrib["href"]
        for box in tree.iter("section")
        if "error" in box.attrib.get("class", "").split()
        for link in box.iter("a")
    }


def _changes(tree: Element) -> dict[str, str]:
    links = {_text(link): link.attrib["href"] for link in tree.iter("a")}
    return {words: address for words, address in links.items() if words.startswith("Change ")}


def test_the_page_shows_every_answer_under_its_label(small: FlaskClient) -> None:
    small.post("/wizard/colour", data={"colour": "red & <b>"})
    small.post("/wizard/word", data={"word": WORD})
    assert _rows(_review(small)) == {
        "Colour": "red & <b>",
        "Secret word": "Entered, kept in memory only",
        "Remark": "Not provided",
    }
    assert _missing(_review(small)) == {}


def test_each_step_has_a_link_that_says_what_it_changes(client: FlaskClient) -> None:
    addresses = _changes(_review(client))
    assert addresses == {
        f"Change {step.short}": f"/wizard/{step.slug}?return=review" for step in STEPS
    }


def test_the_answers_are_under_four_headings_in_the_order_of_the_steps(
    client: FlaskClient,
) -> None:
    tree = _review(client)
    headings = [_text(heading) for heading in tree.iter("h2")]
    assert headings == ["Something is still missing", "Device", "AI", "Access", "Backup"]


def test_a_step_that_no_heading_knows_has_one_of_its_own(small: FlaskClient) -> None:
    headings = [_text(heading) for heading in _review(small).iter("h2")]
    assert headings == ["Something is still missing", "Colour", "Word"]


def test_what_is_missing_is_listed_first_with_links(small: FlaskClient) -> None:
    assert _missing(_review(small)) == {
        "Colour: Not answered yet": "/wizard/colour?return=review",
        "Word: Not answered yet": "/wizard/word?return=review",
    }
    small.post("/wizard/word", data={"word": WORD})
    small.post("/wizard/colour", data={"colour": "black"})
    assert _missing(_review(small)) == {
        "Word: Black takes no word": "/wizard/word?return=review",
    }


def test_wiz_04_after_a_restart_every_lost_secret_is_named(
    wizard: MakeWizard, state_file: Path
) -> None:
    state_file.parent.mkdir(parents=True)
    state_file.write_text(json.dumps(GOOD))
    tree = _review(wizard())
    assert set(_missing(tree)) == {
        "AI: API key – enter again",
        "Private network: Auth key – enter again",
        "Tunnel: Tunnel credentials – enter again",
        "Backup: Application key – enter again",
    }
    assert list(_rows(tree).values()).count("Not held – enter again") == 4
    assert "Entered" not in _text(tree)


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in ("model", "endpoint")])
def test_wiz_15_an_answer_that_is_not_in_the_file_is_listed(
    wizard: MakeWizard, state_file: Path, name: str
) -> None:
    halves = {"tunnel_name": "tunnel_choice", "backup_meta": "backup_kind"}
    gone = {name, halves.get(name, name)}
    answers = {member: value for member, value in ANSWERS.items() if member not in gone}
    state_file.parent.mkdir(parents=True)
    state_file.write_text(json.dumps(GOOD | {"answers": answers}))
    tree = _review(wizard())
    missing = [words for words in _missing(tree) if words.endswith(": Not answered yet")]
    assert len(missing) == 1
