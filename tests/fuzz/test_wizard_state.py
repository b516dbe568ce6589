"""Damaged state files and setup files of the wizard: refused, or every page still works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from platform_common.formats.decode import DecodingError
from platform_common.message import Sentence
from platform_common.resources import schema
from tests.fuzz.conftest import Fuzz
from tests.support.mutations import documents, mutations, places, texts_of
from tests.support.record_cases import changed
from tests.support.wizard_files import ANSWERS, CASES, GOOD, document
from wizard_app.app import create_app
from wizard_app.setup import answers_file, state
from wizard_app.setup.device_facts import DeviceFacts
from wizard_app.setup.settings import WizardSettings
from wizard_app.setup.snapshot import Snapshot, StoredState
from wizard_app.setup.state import WizardState
from wizard_app.setup.steps import STEPS

_VALIDATOR = Draft202012Validator(schema("wizard-state"))
_SEEDS = [json.dumps(document(case)).encode() for case in CASES if case.good]
_WORDS = [f'"{name}"'.encode() for name in (*GOOD, *ANSWERS)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> DeviceFacts:
    """A device without its own records."""
    return DeviceFacts(_settings(tmp_path_factory.mktemp("device")))


def _settings(folder: Path) -> WizardSettings:
    places = {"PLATFORM_ROOT": str(folder / "device"), "WIZARD_DEV_OUT": str(folder / "out")}
    return WizardSettings.from_env(places | {"WIZARD_NO_TOKEN": "1"})


def _parsed(data: bytes) -> WizardState | str:
    """The state, or the error message."""
    try:
        return state.parse(data, STEPS)
    except DecodingError as error:
        return error.message


def test_wiz_01_a_damaged_state_is_refused_or_fully_usable(
    fuzz: Fuzz, machine: DeviceFacts
) -> None:
    steps = {step.slug: step for step in STEPS}

    @fuzz(2000, mutations(_SEEDS, _WORDS))
    def check(data: bytes) -> None:
        found = _parsed(data)
        if isinstance(found, str):
            assert 0 < len(found) < 1000
            return
        assert state.parse(state.render(found), STEPS) == found
        snapshot = Snapshot(steps, machine, StoredState(found))
        for step in STEPS:
            assert snapshot.revision(step)
        assert all(str(lack.why) for lack in snapshot.lacks())
        assert json.loads(answers_file.render(found.answers, STEPS))["version"] == 2


def test_wiz_01_a_wizard_starts_with_any_content_of_its_file(fuzz: Fuzz, tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    settings.state_file.parent.mkdir(parents=True)

    @fuzz(40, mutations(_SEEDS, _WORDS))
    def check(data: bytes) -> None:
        for path in settings.state_file.parent.iterdir():
            path.unlink()
        settings.state_file.write_bytes(data)
        client = create_app(settings).test_client()
        for page in ("", "/review", *(f"/{step.slug}" for step in STEPS)):
            assert client.get(f"/wizard{page}").status_code in (200, 302)


def test_a_damaged_setup_file_is_refused_with_a_reason_or_has_answers(
    fuzz: Fuzz, machine: DeviceFacts
) -> None:
    @fuzz(2000, mutations(_SEEDS, _WORDS))
    def check(data: bytes) -> None:
        found = answers_file.parse(data, STEPS, machine)
        assert all(isinstance(problem, Sentence) for problem in found.problems)
        assert bool(found.problems) or found.steps > 0
        assert found.problems or json.loads(answers_file.render(found.answers, STEPS))["answers"]


_values = documents(
    st.booleans() | st.none() | st.integers() | st.sampled_from([0, 1.5, 3]), texts_of(CASES)
)
# Values that only the code can check: whether a time is valid, and whether a key is private. Such a
# value can be drawn for another place, too.
_BEYOND_SCHEMAS = {repr(case.value) for case in CASES if case.schema_cannot}


def test_schema_and_code_agree_about_other_values(fuzz: Fuzz) -> None:
    @fuzz(2000, st.sampled_from(list(places(GOOD))), _values)
    def check(place: tuple[str | int, ...], value: Any) -> None:
        if repr(value) in _BEYOND_SCHEMAS:
            return
        other = changed(GOOD, place, value)
        found = _parsed(json.dumps(other).encode())
        assert _VALIDATOR.is_valid(other) != isinstance(found, str), found
