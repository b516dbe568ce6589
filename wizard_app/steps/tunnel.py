"""How the device is reached from the internet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.sentence import Sentence
from wizard_app.steps.step import Accepted, Again, Form, Question, Step


class TunnelAnswer(Struct, frozen=True):
    """`skip`, `quick` or `named`; a named one has a name."""

    tunnel_choice: str
    tunnel_name: str = ""


class TunnelStep(Step[TunnelAnswer]):
    """Reach it from the internet (optional) (spec, validation per step)."""

    slug = "tunnel"
    title = Sentence("Reach it from the internet (optional)")
    short = Sentence("Tunnel")
    answer_type = TunnelAnswer

    def filled(self, answer: TunnelAnswer) -> Mapping[str, list[str]]:
        return {}

    def parse(self, form: Form, asked: Question) -> Accepted[TunnelAnswer] | Again:
        raise NotImplementedError

    def summary(self, answer: TunnelAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        return ()
