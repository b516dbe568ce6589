"""Secrets in memory: nothing that shows them shows a secret."""

from __future__ import annotations

from platform_common.secret import Secret
from wizard_app.pending import Held, PendingSecrets

WORD = "CaNaRy-word-0123456789"


def test_leak_08_nothing_that_shows_it_shows_a_secret() -> None:
    pending = PendingSecrets().having("one", Held({"word": Secret(WORD)}))
    for shown in (repr(pending), str(pending), repr(pending.of("one")), f"{pending.of('one')}"):
        assert WORD not in shown
    assert repr(pending) == "PendingSecrets(one)"
