"""The content of the state file: which documents are valid, and which are damaged."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from platform_common.clock import now
from platform_common.formats.decode import DecodingError
from platform_common.resources import schema
from tests.support.record_cases import Case
from tests.support.wizard_files import ANSWERS, CASES, GOOD, document
from wizard_app.setup import state
from wizard_app.setup.answers import Answers, members
from wizard_app.setup.steps import STEPS

_SCHEMA = schema("wizard-state")
_VALIDATOR = Draft202012Validator(_SCHEMA)


def _encoded(document: Any) -> bytes:
    return json.dumps(document).encode()


def _accepted(document: Any) -> bool:
    try:
        state.parse(_encoded(document), STEPS)
    except DecodingError:
        return False
    return True


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_code_and_schema_agree_with_the_table(case: Case) -> None:
    assert _accepted(document(case)) == case.good
    assert _VALIDATOR.is_valid(document(case)) == (case.good or case.schema_cannot)


def test_the_schema_its_examples_and_a_new_state_are_valid() -> None:
    Draft202012Validator.check_schema(_SCHEMA)
    assert _SCHEMA["$id"] == "urn:platform:wizard-state"
    for example in _SCHEMA["examples"]:
        _VALIDATOR.validate(example)
        assert _accepted(example)
    _VALIDATOR.validate(json.loads(state.render(state.WizardState(now(), "system"))))


def test_the_schema_names_every_step_and_answer_and_no_two_steps_share_an_answer() -> None:
    properties = _SCHEMA["properties"]
    assert properties["step"]["enum"] == state.order(STEPS)
    asked = [name for step in STEPS for name in members(step.answer_type)]
    assert sorted(properties["answers"]["properties"]) == sorted(asked)
    assert all("description" in one for one in properties["answers"]["properties"].values())


def test_a_state_is_written_as_it_was_read() -> None:
    found = state.parse(_encoded(GOOD), STEPS)
    assert json.loads(state.render(found)) == GOOD
    assert state.parse(state.render(found), STEPS) == found


def test_fs_12_members_of_a_later_version_are_kept_when_the_file_is_written() -> None:
    later = GOOD | {"later": {"a": [1]}, "answers": ANSWERS | {"colour": "blue"}}
    found = state.parse(_encoded(later), STEPS)
    changed = msgspec.structs.replace(found, step="done")
    assert json.loads(state.render(changed)) == later | {"step": "done"}


def test_unknown_answers_are_separate_from_those_of_the_steps() -> None:
    shapes = [step.answer_type for step in STEPS]
    answers = Answers(ANSWERS | {"colour": "blue"})
    assert answers.only(shapes).values == ANSWERS
    assert answers.without(shapes).values == {"colour": "blue"}
