"""Answers: members of one object in the file, and a type for each step."""

from __future__ import annotations

from msgspec import Struct

from tests.support.small_steps import ColourAnswer, WordAnswer
from wizard_app.setup.answers import Answers


class OptionalAnswer(Struct, frozen=True):
    """A required member and an optional one."""

    must: int
    may: str = ""


def test_an_answer_exists_once_its_required_members_exist() -> None:
    assert Answers({}).of(OptionalAnswer) is None
    assert Answers({"may": "x"}).of(OptionalAnswer) is None
    assert Answers({"must": 1}).of(OptionalAnswer) == OptionalAnswer(1)
    # Members that break the rules of a step are no answer either.
    wrong: tuple[object, ...] = (1, None, [], "none")
    for value in wrong:
        assert Answers({"colour": value}).of(ColourAnswer) is None


def test_an_answer_only_replaces_an_earlier_one_to_the_same_step() -> None:
    first = Answers({"colour": "red", "unknown": 1})
    second = first.with_answer(ColourAnswer("blue")).with_answer(WordAnswer(has_word=True))
    assert second.values == {"colour": "blue", "unknown": 1, "has_word": True}
    assert first.values == {"colour": "red", "unknown": 1}
    # Answers are equal if their members are.
    assert first == Answers(dict(first.values)) != second
    assert hash(first) == hash(Answers(dict(first.values)))
    assert Answers({}) != {}
    # An omitted member replaces an earlier value, too.
    answers = Answers({}).with_answer(OptionalAnswer(1, "x")).with_answer(OptionalAnswer(1))
    assert answers.of(OptionalAnswer) == OptionalAnswer(1, "")
