"""Who answers: a provider of models, and the key to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.sentence import Sentence
from wizard_app.steps.step import Accepted, Again, Form, Question, Step


class ProviderAnswer(Struct, frozen=True):
    """The id of a provider; a model and an address where it needs them."""

    provider: str
    model: str = ""
    endpoint: str = ""


class ProviderStep(Step[ProviderAnswer]):
    """Choose your AI provider (spec, validation per step)."""

    slug = "provider"
    title = Sentence("Choose your AI provider")
    short = Sentence("AI")
    answer_type = ProviderAnswer

    def filled(self, answer: ProviderAnswer) -> Mapping[str, list[str]]:
        return {}

    def parse(self, form: Form, asked: Question) -> Accepted[ProviderAnswer] | Again:
        raise NotImplementedError

    def summary(self, answer: ProviderAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        return ()
