"""Steps of a few lines, for tests of the wizard's flow: a colour, and a secret word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from platform_common.message import Sentence
from platform_common.secret import Secret
from wizard_app.setup.steps.base import (
    Accepted,
    CheckResult,
    Errors,
    Form,
    FormErrors,
    Question,
    Step,
    in_memory,
)

WORD = "CaNaRy-word-0123456789"
# Called during the test of a secret word, before it is held.
Meanwhile = Callable[[], object]


class ColourAnswer(Struct, frozen=True):
    """A colour; never `none`."""

    colour: str

    def __post_init__(self) -> None:
        """Refuse an invalid colour."""
        if self.colour == "none":
            raise ValueError("colour: must be a colour")


class ColourStep(Step[ColourAnswer]):
    """Asks for a colour; `meanwhile` runs while the answer is tested."""

    slug = "colour"
    title = Sentence("Choose a colour")
    short = Sentence("Colour")
    answer_type = ColourAnswer

    def __init__(self, meanwhile: Meanwhile = lambda: None) -> None:
        self.meanwhile = meanwhile

    @property
    def template(self) -> str:
        return "wizard/step.html"

    def filled(self, answer: ColourAnswer) -> Mapping[str, list[str]]:
        return {"colour": [answer.colour]}

    def parse(self, form: Form, asked: Question) -> Accepted[ColourAnswer] | FormErrors:
        colour = form.get("colour")
        if not colour:
            return FormErrors({"colour": Sentence("Choose a colour, not nothing")})
        return Accepted(ColourAnswer(colour), test=self._test)

    def check(self, answer: ColourAnswer, asked: Question) -> Errors:
        return {"colour": Sentence("Mauve is gone")} if answer.colour == "mauve" else {}

    def summary(self, answer: ColourAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        yield Sentence("Colour"), answer.colour

    def _test(self) -> CheckResult:
        self.meanwhile()
        return CheckResult()


class WordAnswer(Struct, frozen=True):
    """Whether there is a secret word."""

    has_word: bool


class WordStep(Step[WordAnswer]):
    """Asks for a secret word, which is invalid on a device whose colour is black."""

    slug = "word"
    title = Sentence("Enter the word")
    short = Sentence("Word")
    answer_type = WordAnswer
    secret_fields = frozenset({"word"})

    @property
    def template(self) -> str:
        return "wizard/step.html"

    def filled(self, answer: WordAnswer) -> Mapping[str, list[str]]:
        return {}

    def parse(self, form: Form, asked: Question) -> Accepted[WordAnswer] | FormErrors:
        word = form.get("word")
        if word == "bad":
            return FormErrors({"word": Sentence("Enter another word")})
        return Accepted(WordAnswer(bool(word)), {"word": Secret(word)} if word else {})

    def check(self, answer: WordAnswer, asked: Question) -> Errors:
        colour = asked.answers.of(ColourAnswer)
        if colour == ColourAnswer("black"):
            return {"word": Sentence("Black takes no word")}
        return {}

    def needs(self, answer: WordAnswer, asked: Question) -> tuple[Sentence, ...]:
        return (Sentence("Secret word"),) if answer.has_word and not asked.held.secrets else ()

    def summary(self, answer: WordAnswer, asked: Question) -> Iterable[tuple[Sentence, Any]]:
        yield Sentence("Secret word"), in_memory(asked, held=bool(asked.held.secrets))
        yield Sentence("Remark"), ""
