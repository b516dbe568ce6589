"""Answers: flat in the file, a shape for each step."""

from __future__ import annotations

from msgspec import Struct

from tests.support.small_steps import ColourAnswer, WordAnswer
from wizard_app.setup.answers import Answers


class OptionalAnswer(Struct, frozen=True):
    """One member that must be there, and one that need not."""

    must: int
    may: str = ""


def test_an_answer_is_there_once_its_required_members_are() -> None:
    assert Answers({}).of(OptionalAnswer) is None
    assert Answers({"may": "x"}).of(OptionalAnswer) is None
    assert Answers({"must": 1}).of(OptionalAnswer) == OptionalAnswer(1)
    # Nor is what breaks the rules of a step.
    wrong: tuple[object, ...] = (1, None, [], "none")
    for value in wrong:
        assert Answers({"colour": value}).of(ColourAnswer) is None


def test_an_answer_takes_the_place_of_an_earlier_one_and_of_nothing_else() -> None:
    first = Answers({"colour": "red", "unknown": 1})
    second = first.with_answer(ColourAnswer("blue")).with_answer(WordAnswer(has_word=True))
    assert second.values == {"colour": "blue", "unknown": 1, "has_word": True}
    assert first.values == {"colour": "red", "unknown": 1}
    # They are equal when their members are.
    assert first == Answers(dict(first.values)) != second
    assert hash(first) == hash(Answers(dict(first.values)))
    assert Answers({}) != {}
    # A member that is left out takes the place of an earlier one, too.
    answers = Answers({}).with_answer(OptionalAnswer(1, "x")).with_answer(OptionalAnswer(1))
    assert answers.of(OptionalAnswer) == OptionalAnswer(1, "")
