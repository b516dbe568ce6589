"""Secrets in memory: what is held for which step, and that nothing shows them."""

from __future__ import annotations

from platform_common.secret import Secret
from platform_common.sentence import Sentence
from wizard_app.pending import NOTHING, Held, PendingSecrets

WORD = "CaNaRy-word-0123456789"
HELD = Held({"word": Secret(WORD)}, Sentence("It works"))


def test_what_is_held_for_a_step_is_there_and_nothing_for_another() -> None:
    pending = PendingSecrets().having("one", HELD)
    assert pending.of("one").secrets == HELD.secrets
    assert pending.of("one").note == HELD.note
    assert pending.of("other") == NOTHING


def test_another_that_holds_more_leaves_the_first_as_it_was() -> None:
    first = PendingSecrets()
    first.having("one", HELD)
    assert first.of("one") == NOTHING


def test_holding_nothing_for_a_step_lets_go_of_what_was_held() -> None:
    pending = PendingSecrets().having("one", HELD).having("one", NOTHING)
    assert pending.of("one") == NOTHING


def test_the_mark_is_another_for_other_secrets_and_the_same_for_the_same() -> None:
    pending = PendingSecrets().having("one", HELD)
    same = pending.having("one", Held({"word": Secret(WORD)}))
    other = pending.having("one", Held({"word": Secret("other")}))
    assert len({pending.of("one").mark, same.of("one").mark, other.of("one").mark}) == 2
    assert pending.of("one").mark == same.of("one").mark != ""


def test_only_some_steps_can_be_taken_along() -> None:
    pending = PendingSecrets().having("one", HELD).having("two", HELD)
    assert pending.only({"two"}).of("one") == NOTHING
    assert pending.only({"two"}).of("two") == pending.of("two")


def test_leak_08_nothing_that_shows_it_shows_a_secret() -> None:
    pending = PendingSecrets().having("one", HELD)
    for shown in (repr(pending), str(pending), repr(pending.of("one")), f"{pending.of('one')}"):
        assert WORD not in shown
    assert repr(pending) == "PendingSecrets(one)"
