"""Secrets in memory: what is held for which step, and that nothing shows them."""

from __future__ import annotations

from platform_common.secret import Secret
from platform_common.sentence import Sentence
from wizard_app.pending import NOTHING, Held, PendingSecrets

WORD = "CaNaRy-word-0123456789"
HELD = Held({"word": Secret(WORD)}, Sentence("It works"))


def test_what_is_held_is_for_its_step_alone_and_its_mark_tells_other_secrets_apart() -> None:
    pending = PendingSecrets().having("one", HELD)
    assert (pending.of("one").secrets, pending.of("one").note) == (HELD.secrets, HELD.note)
    assert pending.of("other") == pending.having("one", NOTHING).of("one") == NOTHING
    assert pending.having("two", HELD).only({"two"}).of("one") == NOTHING
    same = pending.having("one", Held({"word": Secret(WORD)}))
    other = pending.having("one", Held({"word": Secret("other")}))
    assert pending.of("one").mark == same.of("one").mark != other.of("one").mark


def test_leak_08_nothing_that_shows_it_shows_a_secret() -> None:
    pending = PendingSecrets().having("one", HELD)
    for shown in (repr(pending), str(pending), repr(pending.of("one")), f"{pending.of('one')}"):
        assert WORD not in shown
    assert repr(pending) == "PendingSecrets(one)"
