"""Immutable snapshot of the wizard for one request: its answers, its secrets and the device."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from platform_common.message import Sentence
from platform_common.secret import Secret
from wizard_app.setup.apply.journal import Attempt
from wizard_app.setup.device_facts import DeviceFacts
from wizard_app.setup.pending import PendingSecrets
from wizard_app.setup.plan.actions import Planned
from wizard_app.setup.state import WizardState
from wizard_app.setup.steps.base import Accepted, AnyStep, Form, Question

# The form field with the revision of the answer that the page showed.
REVISION = "revision"
_REVISION_LENGTH = 16


class MissingStep(NamedTuple):
    """A step that blocks setup, and the reason."""

    step: AnyStep
    why: Sentence


class StoredState(NamedTuple):
    """What outlasts a request: the state, which is also on disk, and the secrets."""

    state: WizardState
    pending: PendingSecrets = PendingSecrets()


class Snapshot:
    """All answers at one moment, on one device."""

    def __init__(
        self, steps: Mapping[str, AnyStep], machine: DeviceFacts, kept: StoredState
    ) -> None:
        self.steps = steps
        self.machine = machine
        self.state, self.pending = kept

    def asked(self, step: AnyStep) -> Question:
        """The facts and answers that a step may use."""
        return Question(self.machine, self.state.answers, self.pending.of(step.slug))

    def answer(self, step: AnyStep) -> Any | None:
        """The answer to a step; None if there is none yet."""
        return self.state.answers.of(step.answer_type)

    def actions(self, step: AnyStep) -> list[Planned]:
        """The actions for the answer of an answered step."""
        return list(step.actions(self.answer(step), self.asked(step)))

    @property
    def tried(self) -> Attempt | None:
        """How far the last attempt of this setup came; None before the first one."""
        last = self.machine.last_attempt
        return last if last and last.setup == self.state.started_at else None

    @cached_property
    def applied(self) -> frozenset[str]:
        """The ids of the actions that attempts of this setup have done."""
        return self.tried.applied if self.tried else frozenset()

    def summary(self, step: AnyStep) -> list[tuple[Sentence, Any]]:
        """Rows of the review page for an answered step: a label and a value."""
        asked = self.asked(step)._replace(stored=self.is_stored(step))
        return list(step.summary(self.answer(step), asked))

    def is_stored(self, step: AnyStep) -> bool:
        """Whether all secrets of a step that are not in memory are already on the device."""
        lacking = [action for _, action in self.actions(step) if action.lacks_secret]
        return bool(lacking) and all(action.id in self.applied for action in lacking)

    def answered(self) -> Iterator[AnyStep]:
        """The steps that have an answer."""
        return (step for step in self.steps.values() if self.answer(step) is not None)

    def unanswered(self) -> Iterator[AnyStep]:
        """The steps that have no answer."""
        return (step for step in self.steps.values() if self.answer(step) is None)

    def unfit(self) -> Iterator[MissingStep]:
        """The answers that are not valid on this device, or together with the others."""
        for step in self.answered():
            for why in step.check(self.answer(step), self.asked(step)).values():
                yield MissingStep(step, why)

    def lost(self) -> Iterator[MissingStep]:
        """The secrets that answers need but that are neither in memory nor stored."""
        for step in self.answered():
            needed = step.needs(self.answer(step), self.asked(step))
            if needed and not self.is_stored(step):
                for name in needed:
                    yield MissingStep(step, Sentence("{name} – enter again", name=name))

    def used_secrets(self) -> dict[str, dict[str, Secret]]:
        """The secrets in memory that the plan needs, by step slug and name."""
        used = {}
        for step in self.answered():
            needed = step.secrets(self.answer(step), self.asked(step))
            held = self.pending.of(step.slug).secrets
            used[step.slug] = {name: held[name] for name in needed if name in held}
        return used

    def lacks(self, *, with_secrets: bool = True) -> list[MissingStep]:
        """What must be answered or entered again before setup can run, by step."""
        lacks = [MissingStep(step, Sentence("Not answered yet")) for step in self.unanswered()]
        lacks += [*self.unfit(), *(self.lost() if with_secrets else ())]
        order = list(self.steps)
        return sorted(lacks, key=lambda lack: order.index(lack.step.slug))

    def revision(self, step: AnyStep) -> str:
        """A digest that changes with the answer to a step and with its secrets."""
        return f"{self._fingerprint(step)}.{self.pending.of(step.slug).revision}"

    def differs(self, other: Snapshot, step: AnyStep) -> bool:
        """Whether the answer to the step, or a secret of it, differs in another snapshot."""
        revisions = {one.pending.of(step.slug).revision for one in (self, other)}
        return len(revisions) > 1 or self.answer(step) != other.answer(step)

    def is_stale(self, step: AnyStep, form: Form) -> bool:
        """Whether the answer to the step has changed since the page of `form` was made.

        A form without a revision, as scripts send it, is never stale.
        """
        if not form.has(REVISION):
            return False
        fingerprint, _, revision = form.get(REVISION).partition(".")
        held = self.pending.of(step.slug).revision
        # After a restart there are no secrets in memory, although nobody else has answered.
        return fingerprint != self._fingerprint(step) or (held != "" and revision != held)

    def has(self, step: AnyStep, accepted: Accepted[Any]) -> bool:
        """Whether the step already has exactly this answer, as when a form is sent twice."""
        held = dict(self.pending.of(step.slug).secrets)
        same_secrets = accepted.secrets is None or dict(accepted.secrets) == held
        return same_secrets and bool(accepted.answer == self.answer(step))

    def _fingerprint(self, step: AnyStep) -> str:
        text = json.dumps(msgspec.to_builtins(self.answer(step)))
        return hashlib.sha256(text.encode()).hexdigest()[:_REVISION_LENGTH]
