"""A step prepared for its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from platform_common.message import Sentence
from wizard_app.setup.pending import HeldSecrets
from wizard_app.setup.snapshot import MissingStep, Snapshot
from wizard_app.setup.steps.base import AnyStep, Errors, FormErrors


class Page(NamedTuple):
    """A step for its template; `fields` are the form's values, each a list."""

    step: AnyStep
    fields: Mapping[str, list[str]]
    errors: Errors
    status: int
    more: Mapping[str, Any]
    revision: str
    held: HeldSecrets
    lost: Sequence[MissingStep]
    problems: Sequence[str]
    notice: Sentence | None = None


def shown(
    snapshot: Snapshot,
    step: AnyStep,
    fields: Mapping[str, list[str]],
    again: FormErrors,
    notice: Sentence | None = None,
) -> Page:
    """The page of a step, with these values in its form and these messages."""
    asked = snapshot.asked(step)
    more = {**step.view(asked), **again.more}
    return Page(
        step,
        fields,
        again.errors,
        again.status,
        more,
        snapshot.revision(step),
        asked.held,
        list(snapshot.lost()),
        [*asked.machine.problems, *step.problems(asked)],
        notice,
    )
