"""Setup files: the answers without secrets, to be used on another device."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from platform_common.formats.decode import DecodingError, from_json, shaped
from platform_common.message import Sentence
from wizard_app.setup.answers import Answers, members
from wizard_app.setup.device_facts import DeviceFacts
from wizard_app.setup.state import VERSION
from wizard_app.setup.steps.base import AnyStep, Question

LIMIT_BYTES = 256 << 10
_LONGEST_VERSION = 20


class SetupFile(NamedTuple):
    """The contents of a setup file and the number of answered steps; or why it is refused."""

    answers: Answers = Answers({})
    steps: int = 0
    problems: Sequence[Sentence] = ()


class _File(Struct, frozen=True):
    version: int
    answers: dict[str, Any]


def render(answers: Answers, steps: Sequence[AnyStep]) -> bytes:
    """The setup file for the answers, without unknown members, which might be secret."""
    answered = (step.answer_type for step in steps if answers.of(step.answer_type) is not None)
    document = {"version": VERSION, "answers": answers.only(answered).values}
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


def parse(data: bytes, steps: Sequence[AnyStep], machine: DeviceFacts) -> SetupFile:
    """Parse a setup file; either all of it is valid on this device, or there are problems.

    Members that no step uses, such as secrets that somebody added, are left out.
    """
    try:
        file = from_json(data, _File)
    except DecodingError as error:
        return _refused(Sentence("This is not a setup file: {why}", why=error.message))
    if file.version != VERSION:
        return _refused(
            Sentence(
                "This setup file is version {version}, but this device reads version {known}",
                version=str(file.version)[:_LONGEST_VERSION],
                known=VERSION,
            )
        )
    given = [step for step in steps if file.answers.keys() & set(members(step.answer_type))]
    problems = [problem for step in given for problem in _problems_of_shape(step, file.answers)]
    if not given:
        problems = [Sentence("This setup file contains no answers")]
    answers = Answers(file.answers).only(step.answer_type for step in given)
    return SetupFile(answers, len(given), problems or list(_unfit(given, answers, machine)))


def _refused(problem: Sentence) -> SetupFile:
    return SetupFile(problems=[problem])


def _problems_of_shape(step: AnyStep, answers: Mapping[str, Any]) -> list[Sentence]:
    try:
        shaped(answers, step.answer_type, at="answers")
    except DecodingError as error:
        return [Sentence("{step}: {why}", step=step.short, why=error.message)]
    return []


def _unfit(steps: Sequence[AnyStep], answers: Answers, machine: DeviceFacts) -> list[Sentence]:
    """The steps' own objections, each checked with the other answers of the file."""
    return [
        Sentence("{step}: {problem}", step=step.short, problem=problem)
        for step in steps
        for problem in step.check(answers.of(step.answer_type), Question(machine, answers)).values()
    ]
