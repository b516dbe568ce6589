"""Two tabs or browsers at once: nothing is mixed, and nothing is lost without a word."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask.testing import FlaskClient

from tests.support.forms import hidden, opened
from tests.support.small_steps import WORD, ColourStep, WordStep
from tests.wizard_app.conftest import SMALL, MakeWizard
from tests.wizard_app.step_pages import StepPage

NOTICE = "answered in another tab or browser in the meantime"
OTHER_WORD = "CaNaRy-other-0123456789"


def filled(page: StepPage, **typed: str) -> dict[str, str]:
    """The form of a page, opened now and filled in."""
    return opened(page.client, f"/wizard/{page.slug}", **typed)


def stale(page: StepPage, form: dict[str, str]) -> str:
    """The page that a form is answered with which another one was quicker than."""
    before = page.stored, page.held
    answer = page.send(form)
    assert answer.status_code == 409
    assert NOTICE in answer.text
    assert (page.stored, page.held) == before
    return answer.text


def test_a_form_that_another_was_quicker_than_is_shown_with_a_notice(colour: StepPage) -> None:
    first, second = filled(colour, colour="red"), filled(colour, colour="blue")
    colour.take(first)
    page = stale(colour, second)
    assert colour.stored == {"colour": "red"}
    # Whoever reads the notice and goes on means it.
    colour.take(hidden(page), colour="blue")
    assert colour.stored == {"colour": "blue"}


def test_a_stale_form_keeps_what_was_typed(colour: StepPage, wizard: MakeWizard) -> None:
    form = filled(colour, colour="")
    colour.take({"colour": "red"})
    page = colour.refuse(form)
    assert NOTICE in page
    assert "Choose a colour, not nothing" in page
    system = StepPage(wizard(), "system", colour.state_file)
    form = filled(system, hostname="second", timezone="Europe/Berlin")
    system.take({"hostname": "first", "timezone": "UTC"})
    page = stale(system, form)
    assert 'value="second"' in page
    assert 'value="Europe/Berlin"' in page


def test_ses_10_a_form_sent_twice_is_no_conflict(colour: StepPage, word: StepPage) -> None:
    red = filled(colour, colour="red")
    form = filled(word, word=WORD)
    for _ in range(3):
        assert word.take(form) == "/wizard/review"
    assert (word.stored, word.held) == ({"has_word": True}, {"word": WORD})
    # Another step that was answered makes no form stale.
    colour.take(red)
    # One from the cache does not undo a later answer.
    colour.take(filled(colour, colour="blue"))
    stale(colour, red)
    assert colour.stored == {"colour": "blue", "has_word": True}


def test_another_secret_makes_a_form_stale_with_the_same_answer(word: StepPage) -> None:
    word.take({"word": "first-word"})
    form = filled(word, word=WORD)
    word.take({"word": OTHER_WORD})
    assert WORD not in stale(word, form)
    assert word.held == {"word": OTHER_WORD}


def test_a_form_of_before_a_restart_may_be_taken(word: StepPage, wizard: MakeWizard) -> None:
    word.take({"word": "first-word"})
    form = filled(word, word=WORD)
    after = word._replace(client=wizard(steps=SMALL))
    after.take(form)
    assert after.held == {"word": WORD}


def test_an_invalid_revision_counts_as_a_different_one(colour: StepPage) -> None:
    for revision in ("", ".", "x", "x.y", "\0", "é" * 100, "a" * 10_000):
        stale(colour, {"colour": "red", "revision": revision})


@pytest.mark.parametrize("revision", [True, False], ids=["browser", "script"])
def test_a_form_overtaken_during_the_test_shows_the_page_again(
    wizard: MakeWizard, colour: StepPage, *, revision: bool
) -> None:
    step = ColourStep()
    page = colour._replace(client=wizard(steps=(step, WordStep())))
    form = filled(page) if revision else {}

    def overtake() -> None:
        step.meanwhile = lambda: None
        page._replace(client=page.client.application.test_client()).take({"colour": "red"})

    step.meanwhile = overtake
    late = page.send(form, colour="blue")
    assert late.status_code == 409
    assert NOTICE in late.text
    assert page.stored == {"colour": "red"}


def test_a_slow_test_delays_nobody_else(wizard: MakeWizard, word: StepPage) -> None:
    testing, finished = threading.Event(), threading.Event()

    def meanwhile() -> None:
        testing.set()
        assert finished.wait(120)

    word = word._replace(client=wizard(steps=(ColourStep(meanwhile), WordStep())))
    other = word.client.application.test_client()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(other.post, "/wizard/colour", data={"colour": "red"})
        assert testing.wait(120)
        word.take({"word": WORD})
        assert "Not answered yet" in word.review
        finished.set()
        assert slow.result(120).status_code == 302
    assert "red" in word.review
    assert word.held == {"word": WORD}


def _sent_at_once(client: FlaskClient, forms: Sequence[tuple[str, dict[str, str]]]) -> list[int]:
    start = threading.Barrier(len(forms))

    def send(slug: str, form: dict[str, str]) -> int:
        one = client.application.test_client()
        start.wait(120)
        return one.post(f"/wizard/{slug}", data=form).status_code

    with ThreadPoolExecutor(len(forms)) as pool:
        return list(pool.map(lambda form: send(*form), forms))


def test_of_many_different_forms_at_once_one_wins(colour: StepPage, word: StepPage) -> None:
    form = filled(colour)
    colours = [f"colour-{number}" for number in range(12)]
    sent = _sent_at_once(colour.client, [("colour", form | {"colour": one}) for one in colours])
    assert sorted(sent) == [302] + [409] * 11
    assert colour.stored == {"colour": colours[sent.index(302)]}
    # A double click is answered like one click.
    form = filled(word, word=WORD)
    assert _sent_at_once(word.client, [("word", form)] * 8) == [302] * 8


def test_different_steps_at_once_are_all_kept(colour: StepPage, word: StepPage) -> None:
    for number in range(5):
        one, other = f"colour-{number}", f"{WORD}-{number}"
        forms = [("colour", filled(colour, colour=one)), ("word", filled(word, word=other))]
        assert _sent_at_once(colour.client, forms) == [302, 302]
        assert colour.stored == {"colour": one, "has_word": True}
        assert word.held == {"word": other}
