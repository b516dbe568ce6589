"""The dashboard for the bench, without programs behind it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from flask import Flask

from platform_common.message import Sentence
from platform_common.process.run import Finished
from pwa_app.app import create_app
from pwa_app.control_client import ControlCli
from pwa_app.settings import PwaSettings
from pwa_app.stub import StubCli


class Instant:
    """A control CLI with ready answers."""

    sample: Sentence | None = None

    def __init__(self) -> None:
        self._made_up = StubCli(Sentence("made up"))
        self._answers: dict[tuple[str, ...], Finished] = {}

    def run(
        self, words: Sequence[str], *, stdin: bytes = b"", limit_s: float | None = None
    ) -> Finished:
        """The same bytes for the same call."""
        key = tuple(words)
        if key not in self._answers:
            self._answers[key] = self._made_up.run(words)
        return self._answers[key]


def dashboard() -> Flask:
    """Our app, whose calls are answered at once."""
    cli: ControlCli = Instant()
    return create_app(PwaSettings.from_env(os.environ), cli=cli)
