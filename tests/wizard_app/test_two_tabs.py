"""Two tabs or browsers at once: nothing is mixed, and nothing is lost without a word."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from platform_common.secret import Secret
from tests.support.forms import hidden, opened
from tests.support.small_steps import WORD, ColourStep, WordStep
from tests.wizard_app.conftest import SMALL, MakeWizard
from wizard_app.flow import Wizard

NOTICE = "answered in another tab or browser in the meantime"
OTHER_WORD = "CaNaRy-other-0123456789"


@pytest.fixture
def client(small: FlaskClient) -> FlaskClient:
    return small


def _answers(state_file: Path) -> dict[str, object]:
    answers: dict[str, object] = json.loads(state_file.read_bytes())["answers"]
    return answers


def _word(client: FlaskClient) -> Secret | None:
    found: Wizard = client.application.extensions["wizard_app"]
    return found.standing().pending.of("word").secrets.get("word")


def test_a_form_that_somebody_else_was_quicker_with_is_shown_again_with_a_notice(
    client: FlaskClient, state_file: Path
) -> None:
    first, second = opened(client, "/wizard/colour"), opened(client, "/wizard/colour")
    assert client.post("/wizard/colour", data=first | {"colour": "red"}).status_code == 302
    stale = client.post("/wizard/colour", data=second | {"colour": "blue"})
    assert stale.status_code == 409
    assert NOTICE in stale.text
    assert _answers(state_file) == {"colour": "red"}
    # Whoever reads the notice and goes on means it.
    again = client.post("/wizard/colour", data=hidden(stale.text) | {"colour": "blue"})
    assert again.status_code == 302
    assert _answers(state_file) == {"colour": "blue"}


def test_a_stale_form_keeps_what_was_typed(client: FlaskClient, wizard: MakeWizard) -> None:
    form = opened(client, "/wizard/colour", colour="")
    client.post("/wizard/colour", data={"colour": "red"})
    stale = client.post("/wizard/colour", data=form)
    assert stale.status_code == 200
    assert NOTICE in stale.text
    assert "Choose a colour, not nothing" in stale.text
    client = wizard()
    form = opened(client, "/wizard/system", hostname="second", timezone="Europe/Berlin")
    client.post("/wizard/system", data={"hostname": "first", "timezone": "UTC"})
    stale = client.post("/wizard/system", data=form)
    assert stale.status_code == 409
    assert 'value="second"' in stale.text
    assert 'value="Europe/Berlin"' in stale.text


def test_ses_10_a_form_sent_twice_is_no_conflict(client: FlaskClient, state_file: Path) -> None:
    colour = opened(client, "/wizard/colour", colour="red")
    form = opened(client, "/wizard/word", word=WORD)
    for _ in range(3):
        sent = client.post("/wizard/word", data=form)
        assert (sent.status_code, sent.location) == (302, "/wizard/review")
    assert _answers(state_file) == {"has_word": True}
    assert _word(client) == Secret(WORD)
    # Another step that was answered makes no form stale.
    assert client.post("/wizard/colour", data=colour).status_code == 302
    # One from the cache does not undo a later answer.
    client.post("/wizard/colour", data=opened(client, "/wizard/colour", colour="blue"))
    assert client.post("/wizard/colour", data=colour).status_code == 409
    assert _answers(state_file) == {"colour": "blue", "has_word": True}


def test_another_secret_makes_a_form_stale_with_the_same_answer(client: FlaskClient) -> None:
    client.post("/wizard/word", data={"word": "first-word"})
    form = opened(client, "/wizard/word", word=WORD)
    client.post("/wizard/word", data={"word": OTHER_WORD})
    stale = client.post("/wizard/word", data=form)
    assert stale.status_code == 409
    assert WORD not in stale.text
    assert _word(client) == Secret(OTHER_WORD)


def test_a_form_of_before_a_restart_is_taken_when_nobody_answered_since(wizard: MakeWizard) -> None:
    before = wizard(steps=SMALL)
    before.post("/wizard/word", data={"word": "first-word"})
    form = opened(before, "/wizard/word", word=WORD)
    after = wizard(steps=SMALL)
    assert after.post("/wizard/word", data=form).status_code == 302
    assert _word(after) == Secret(WORD)


def test_forms_without_a_revision_are_taken(client: FlaskClient, state_file: Path) -> None:
    for colour in ("red", "blue"):
        assert client.post("/wizard/colour", data={"colour": colour}).status_code == 302
        assert _answers(state_file) == {"colour": colour}


def test_a_revision_that_is_none_counts_as_another(client: FlaskClient) -> None:
    for revision in ("", ".", "x", "x.y", "\0", "é" * 100, "a" * 10_000):
        sent = client.post("/wizard/colour", data={"colour": "red", "revision": revision})
        assert sent.status_code == 409, revision


@pytest.mark.parametrize("revision", [True, False], ids=["browser", "script"])
def test_who_is_overtaken_while_the_test_runs_sees_the_page_again(
    wizard: MakeWizard, state_file: Path, *, revision: bool
) -> None:
    colour = ColourStep()
    client = wizard(steps=(colour, WordStep()))
    form = opened(client, "/wizard/colour") if revision else {}

    def overtake() -> None:
        colour.meanwhile = lambda: None
        assert (
            client.application.test_client().post("/wizard/colour", data={"colour": "red"}).location
        )

    colour.meanwhile = overtake
    late = client.post("/wizard/colour", data=form | {"colour": "blue"})
    assert late.status_code == 409
    assert NOTICE in late.text
    assert _answers(state_file) == {"colour": "red"}


def test_a_slow_test_delays_nobody_else(wizard: MakeWizard) -> None:
    testing, finished = threading.Event(), threading.Event()

    def meanwhile() -> None:
        testing.set()
        assert finished.wait(120)

    client = wizard(steps=(ColourStep(meanwhile), WordStep()))
    app = client.application
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(app.test_client().post, "/wizard/colour", data={"colour": "red"})
        assert testing.wait(120)
        assert client.post("/wizard/word", data={"word": WORD}).status_code == 302
        assert client.get("/wizard/review").status_code == 200
        finished.set()
        assert slow.result(120).status_code == 302
    assert "red" in client.get("/wizard/review").text
    assert _word(client) == Secret(WORD)


def _sent_at_once(client: FlaskClient, forms: Sequence[tuple[str, dict[str, str]]]) -> list[int]:
    start = threading.Barrier(len(forms))

    def send(address: str, form: dict[str, str]) -> int:
        one = client.application.test_client()
        start.wait(120)
        return one.post(address, data=form).status_code

    with ThreadPoolExecutor(len(forms)) as pool:
        return list(pool.map(lambda form: send(*form), forms))


def test_of_many_different_forms_at_once_one_wins(client: FlaskClient, state_file: Path) -> None:
    form = opened(client, "/wizard/colour")
    colours = [f"colour-{number}" for number in range(12)]
    sent = _sent_at_once(client, [("/wizard/colour", form | {"colour": one}) for one in colours])
    assert sorted(sent) == [302] + [409] * 11
    assert _answers(state_file) == {"colour": colours[sent.index(302)]}
    # A double click is answered like one click.
    form = opened(client, "/wizard/word", word=WORD)
    assert _sent_at_once(client, [("/wizard/word", form)] * 8) == [302] * 8


def test_different_steps_at_once_are_all_kept(client: FlaskClient, state_file: Path) -> None:
    for number in range(5):
        colour = opened(client, "/wizard/colour", colour=f"colour-{number}")
        word = opened(client, "/wizard/word", word=f"{WORD}-{number}")
        sent = _sent_at_once(client, [("/wizard/colour", colour), ("/wizard/word", word)])
        assert sent == [302, 302]
        assert _answers(state_file) == {"colour": f"colour-{number}", "has_word": True}
        assert _word(client) == Secret(f"{WORD}-{number}")
