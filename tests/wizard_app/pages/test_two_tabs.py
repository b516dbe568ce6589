"""Two tabs or browsers at once: answers are not mixed, and none is lost silently."""

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
    """The hidden fields of a page that is opened now, with `typed` filled in."""
    return opened(page.client, f"/wizard/{page.slug}", **typed)


def send_stale(page: StepPage, form: dict[str, str]) -> str:
    """Send a form that another one overtook; return the page with the notice."""
    before = page.stored, page.held
    answer = page.send(form)
    assert answer.status_code == 409
    assert NOTICE in answer.text
    assert (page.stored, page.held) == before
    return answer.text


def test_a_form_that_another_form_overtook_is_shown_with_a_notice(colour: StepPage) -> None:
    first, second = filled(colour, colour="red"), filled(colour, colour="blue")
    colour.accept(first)
    page = send_stale(colour, second)
    assert colour.stored == {"colour": "red"}
    # Sending it again after the notice is intended.
    colour.accept(hidden(page), colour="blue")
    assert colour.stored == {"colour": "blue"}


def test_a_stale_form_keeps_what_was_typed(colour: StepPage, wizard: MakeWizard) -> None:
    form = filled(colour, colour="")
    colour.accept({"colour": "red"})
    page = colour.refuse(form)
    assert NOTICE in page
    assert "Choose a colour, not nothing" in page
    system = StepPage(wizard(), "system", colour.state_file)
    form = filled(system, hostname="second", timezone="Europe/Berlin")
    system.accept({"hostname": "first", "timezone": "UTC"})
    page = send_stale(system, form)
    assert 'value="second"' in page
    assert 'value="Europe/Berlin"' in page


def test_ses_10_submitting_a_form_twice_is_no_conflict(colour: StepPage, word: StepPage) -> None:
    red = filled(colour, colour="red")
    form = filled(word, word=WORD)
    for _ in range(3):
        assert word.accept(form) == "/wizard/review"
    assert (word.stored, word.held) == ({"has_word": True}, {"word": WORD})
    # An answer to another step does not make a form stale.
    colour.accept(red)
    # A form from the browser's cache does not undo a later answer.
    colour.accept(filled(colour, colour="blue"))
    send_stale(colour, red)
    assert colour.stored == {"colour": "blue", "has_word": True}


def test_another_secret_makes_a_form_stale_even_if_the_answer_is_the_same(word: StepPage) -> None:
    word.accept({"word": "first-word"})
    form = filled(word, word=WORD)
    word.accept({"word": OTHER_WORD})
    assert WORD not in send_stale(word, form)
    assert word.held == {"word": OTHER_WORD}


def test_a_form_opened_before_a_restart_can_be_accepted(word: StepPage, wizard: MakeWizard) -> None:
    word.accept({"word": "first-word"})
    form = filled(word, word=WORD)
    after = word._replace(client=wizard(steps=SMALL))
    after.accept(form)
    assert after.held == {"word": WORD}


def test_an_invalid_revision_counts_as_a_different_one(colour: StepPage) -> None:
    for revision in ("", ".", "x", "x.y", "\0", "é" * 100, "a" * 10_000):
        send_stale(colour, {"colour": "red", "revision": revision})


@pytest.mark.parametrize("revision", [True, False], ids=["browser", "script"])
def test_a_form_overtaken_during_its_test_is_shown_again(
    wizard: MakeWizard, colour: StepPage, *, revision: bool
) -> None:
    step = ColourStep()
    page = colour._replace(client=wizard(steps=(step, WordStep())))
    form = filled(page) if revision else {}

    def overtake() -> None:
        step.meanwhile = lambda: None
        page._replace(client=page.client.application.test_client()).accept({"colour": "red"})

    step.meanwhile = overtake
    late = page.send(form, colour="blue")
    assert late.status_code == 409
    assert NOTICE in late.text
    assert page.stored == {"colour": "red"}


def test_a_slow_test_does_not_delay_other_forms(wizard: MakeWizard, word: StepPage) -> None:
    testing, finished = threading.Event(), threading.Event()

    def meanwhile() -> None:
        testing.set()
        assert finished.wait(120)

    word = word._replace(client=wizard(steps=(ColourStep(meanwhile), WordStep())))
    other = word.client.application.test_client()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(other.post, "/wizard/colour", data={"colour": "red"})
        assert testing.wait(120)
        word.accept({"word": WORD})
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


def test_of_many_different_simultaneous_forms_one_is_accepted(
    colour: StepPage, word: StepPage
) -> None:
    form = filled(colour)
    colours = [f"colour-{number}" for number in range(12)]
    sent = _sent_at_once(colour.client, [("colour", form | {"colour": one}) for one in colours])
    assert sorted(sent) == [302] + [409] * 11
    assert colour.stored == {"colour": colours[sent.index(302)]}
    # A double click is answered like one click.
    form = filled(word, word=WORD)
    assert _sent_at_once(word.client, [("word", form)] * 8) == [302] * 8


def test_simultaneous_answers_to_different_steps_are_all_kept(
    colour: StepPage, word: StepPage
) -> None:
    for number in range(5):
        one, other = f"colour-{number}", f"{WORD}-{number}"
        forms = [("colour", filled(colour, colour=one)), ("word", filled(word, word=other))]
        assert _sent_at_once(colour.client, forms) == [302, 302]
        assert colour.stored == {"colour": one, "has_word": True}
        assert word.held == {"word": other}
