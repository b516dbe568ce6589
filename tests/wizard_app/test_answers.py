"""Answers: flat in the file, a shape for each step."""

from __future__ import annotations

import pytest
from msgspec import Struct

from tests.support.small_steps import ColourAnswer, WordAnswer
from wizard_app.answers import Answers, members


class OptionalAnswer(Struct, frozen=True):
    """One member that must be there, and one that need not."""

    must: int
    may: str = ""


def test_an_answer_is_there_once_its_required_members_are() -> None:
    assert Answers({}).of(OptionalAnswer) is None
    assert Answers({"may": "x"}).of(OptionalAnswer) is None
    assert Answers({"must": 1}).of(OptionalAnswer) == OptionalAnswer(1)


@pytest.mark.parametrize("value", [1, None, [], "none"])
def test_what_breaks_the_rules_of_a_step_is_no_answer(value: object) -> None:
    assert Answers({"colour": value}).of(ColourAnswer) is None


def test_an_answer_takes_the_place_of_an_earlier_one_and_of_nothing_else() -> None:
    first = Answers({"colour": "red", "unknown": 1})
    second = first.with_answer(ColourAnswer("blue")).with_answer(WordAnswer(has_word=True))
    assert second.values == {"colour": "blue", "unknown": 1, "has_word": True}
    assert first.values == {"colour": "red", "unknown": 1}


def test_a_member_that_is_left_out_takes_the_place_of_an_earlier_one_too() -> None:
    answers = Answers({}).with_answer(OptionalAnswer(1, "x")).with_answer(OptionalAnswer(1))
    assert answers.of(OptionalAnswer) == OptionalAnswer(1, "")


def test_answers_are_equal_when_their_members_are() -> None:
    assert Answers({"a": [1]}) == Answers({"a": [1]})
    assert hash(Answers({"a": [1]})) == hash(Answers({"a": [1]}))
    assert Answers({"a": 1}) != Answers({"a": 2})
    assert Answers({}) != {}


def test_the_members_of_a_shape_are_told_apart() -> None:
    assert members(OptionalAnswer) == ["must", "may"]
    assert members(OptionalAnswer, required=True) == ["must"]
