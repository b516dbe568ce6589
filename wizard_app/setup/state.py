"""The wizard's state: `/var/lib/platform/wizard-state.json`, which contains no secret."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from platform_common.formats.decode import DecodingError, check_member, from_json, shaped
from wizard_app.setup.answers import Answers, members
from wizard_app.setup.steps.base import AnyStep

VERSION = 2
REVIEW, DONE = "review", "done"
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})"
)


class WizardState(Struct, frozen=True):
    """The current step and the answers; times are RFC 3339.

    `more` has the members of the file that this version does not know; they are kept.
    """

    started_at: str
    step: str
    answers: Answers = Answers({})
    completed_at: str | None = None
    more: Mapping[str, Any] = {}


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


def order(steps: Sequence[AnyStep]) -> list[str]:
    """Every value of `step`, first to last."""
    return [*(step.slug for step in steps), REVIEW, DONE]


def parse(data: bytes, steps: Sequence[AnyStep]) -> WizardState:
    """Parse the JSON `data`; raises `DecodingError`, with the place and no value.

    Unknown members are kept, and so are those of an incomplete answer, which counts as missing.
    """
    tree = from_json(data, dict[str, Any])
    file = shaped(tree, _File)
    if file.step not in order(steps):
        raise DecodingError("step: must be the name of a step")
    for step in steps:
        _check(file.answers, step.answer_type)
    more = {name: value for name, value in tree.items() if name not in members(_File)}
    return WizardState(file.started_at, file.step, Answers(file.answers), file.completed_at, more)


def render(state: WizardState) -> bytes:
    """Return the state as JSON."""
    document = {
        "version": VERSION,
        "started_at": state.started_at,
        "completed_at": state.completed_at,
        "step": state.step,
        "answers": state.answers.values,
        **state.more,
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


def _check(answers: Mapping[str, Any], shape: type[Struct]) -> None:
    if answers.keys() >= set(members(shape, required=True)):
        shaped(answers, shape, at="answers")
        return
    for field in msgspec.structs.fields(shape):
        if field.encode_name in answers:
            shaped(answers[field.encode_name], field.type, at=f"answers.{field.encode_name}")


def _check_time(text: str) -> None:
    try:
        fits = _TIME.fullmatch(text) is not None and datetime.fromisoformat(text) is not None
    except ValueError:
        fits = False
    if not fits:
        raise ValueError("must be a time such as 2026-11-01T12:00:00Z")
