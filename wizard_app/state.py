"""Where the wizard stands: `/var/lib/platform/wizard-state.json`, which holds no secret."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from platform_common.decoding import DecodingError, check_member, from_json, shaped
from wizard_app.answers import Answers
from wizard_app.steps.step import AnyStep

VERSION = 2
REVIEW, DONE = "review", "done"


class WizardState(Struct, frozen=True):
    """The step reached, and the answers; times are RFC 3339."""

    started_at: str
    step: str
    answers: Answers = Answers({})
    completed_at: str | None = None


class _File(Struct, frozen=True):
    version: Literal[2]
    started_at: str
    step: str
    completed_at: str | None = None
    answers: dict[str, Any] = {}

    def __post_init__(self) -> None:
        for name in ("started_at", "completed_at"):
            if (value := getattr(self, name)) is not None:
                check_member(name, _check_time, value)


def now() -> str:
    """The present moment as the file has it: RFC 3339, UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def order(steps: Sequence[AnyStep]) -> list[str]:
    """Every value of `step`, first to last."""
    return [*(step.slug for step in steps), REVIEW, DONE]


def parse(data: bytes, steps: Sequence[AnyStep]) -> WizardState:
    """The state in the JSON `data`; raises `DecodingError`, with the place and no value.

    Answers that no step asks for are kept.
    """
    file = from_json(data, _File)
    if file.step not in order(steps):
        raise DecodingError("step: must be the name of a step")
    for step in steps:
        members = {field.encode_name for field in msgspec.structs.fields(step.answer_type)}
        if members & file.answers.keys():
            shaped(file.answers, step.answer_type, at="answers")
    return WizardState(file.started_at, file.step, Answers(file.answers), file.completed_at)


def render(state: WizardState) -> bytes:
    """The JSON of a state."""
    document = {
        "version": VERSION,
        "started_at": state.started_at,
        "completed_at": state.completed_at,
        "step": state.step,
        "answers": state.answers.values,
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


def _check_time(text: str) -> None:
    try:
        aware = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        aware = False
    if not aware or not text.isascii():
        raise ValueError("must be a time such as 2026-11-01T12:00:00Z")
