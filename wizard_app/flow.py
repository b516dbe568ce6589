"""The wizard's course: which page comes next, what a form changes, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from platform_common.errors import PlatformError
from platform_common.sentence import Sentence
from platform_common.web.flash import Flash, SingleShot
from wizard_app.machine import Machine
from wizard_app.pending import Held, PendingSecrets
from wizard_app.settings import WizardSettings
from wizard_app.state import REVIEW, WizardState, order
from wizard_app.state_file import StateFile
from wizard_app.steps.step import Accepted, Again, AnyStep, Errors, Form, Passed, Question

# Fields that every step's form has beside its own.
REVISION, RETURN = "revision", "return"
_REVISION_LENGTH = 16


class Page(NamedTuple):
    """A step as it is shown; `fields` are the values in its form, each a list."""

    step: AnyStep
    fields: Mapping[str, list[str]]
    errors: Errors
    status: int
    more: Mapping[str, Any]
    revision: str
    held: Held
    problems: Sequence[str]
    notice: Sentence | None = None


class Lack(NamedTuple):
    """Why apply could not begin: a step, and what it lacks."""

    step: AnyStep
    why: Sentence


class Wizard:
    """One setup of one device; safe to be asked from several threads."""

    def __init__(self, settings: WizardSettings, steps: Sequence[AnyStep]) -> None:
        self._settings = settings
        self.steps = {step.slug: step for step in steps}
        self.pending = PendingSecrets()
        self.flash = SingleShot()
        self.file = StateFile(settings.state_file, steps)
        self._state = self.file.load()
        self._order = order(steps)
        self._changing = threading.Lock()

    @property
    def state(self) -> WizardState:
        """Where the wizard stands now."""
        return self._state

    def machine(self) -> Machine:
        """The device, for one request."""
        return Machine(self._settings)

    def asked(self, step: AnyStep, machine: Machine | None = None) -> Question:
        """What a step asks from."""
        return Question(machine or self.machine(), self._state.answers, self.pending.of(step.slug))

    def after(self, slug: str) -> str:
        """The value of `step` that follows."""
        return self._order[self._order.index(slug) + 1]

    def before(self, slug: str) -> str | None:
        """The value of `step` that comes before; None for the first."""
        place = self._order.index(slug)
        return self._order[place - 1] if place else None

    @property
    def count(self) -> int:
        """How many pages there are to answer, review among them."""
        return len(self.steps) + 1

    def number(self, slug: str) -> int:
        """The place of a step, from 1."""
        return self._order.index(slug) + 1

    def page(self, step: AnyStep) -> Page:
        """A step with what was answered, or what may be suggested."""
        asked = self.asked(step)
        answer = asked.answers.of(step.answer_type)
        fields = step.suggested(asked) if answer is None else step.filled(answer)
        errors = {} if answer is None else step.check(answer, asked)
        return self._page(step, asked, fields, Again(errors))

    def submit(self, step: AnyStep, form: Form) -> Page | str:
        """What a form leads to: its page again, or the value of `step` to go on with.

        What is stored is stored durably before this returns, and in memory only then.
        """
        asked = self.asked(step)
        known = self._revision(step)
        stale = form.has(REVISION) and form.get(REVISION) != known
        outcome = step.parse(form, asked)
        passed = Passed()
        if isinstance(outcome, Accepted):
            same = outcome.answer == asked.answers.of(step.answer_type)
            if not (stale and not same):
                passed = outcome.test() if outcome.test else passed
                if passed.again is None:
                    return self._store(step, form, outcome, passed.note, known)
        again = outcome if isinstance(outcome, Again) else passed.again or Again(status=409)
        fields = form.typed(step.secret_fields)
        return self._page(step, asked, fields, again, notice=_CHANGED if stale else None)

    def lacks(self) -> Iterator[Lack]:
        """All that must be answered, or entered again, before anything can be applied."""
        machine = self.machine()
        for step in self.steps.values():
            asked = self.asked(step, machine)
            answer = asked.answers.of(step.answer_type)
            if answer is None:
                yield Lack(step, Sentence("Not answered yet"))
                continue
            for why in step.check(answer, asked).values():
                yield Lack(step, why)
        yield from self.lost()

    def lost(self) -> Iterator[Lack]:
        """The secrets that were entered once, and are no longer held."""
        machine = self.machine()
        for step in self.steps.values():
            asked = self.asked(step, machine)
            answer = asked.answers.of(step.answer_type)
            for name in () if answer is None else step.needs(answer, asked):
                yield Lack(step, Sentence("{name}: enter it again", name=name))

    def _store(
        self, step: AnyStep, form: Form, accepted: Accepted[Any], note: Sentence | None, known: str
    ) -> Page | str:
        with self._changing:
            if self._revision(step) != known:
                asked = self.asked(step)
                fields = form.typed(step.secret_fields)
                return self._page(step, asked, fields, Again(status=409), notice=_CHANGED)
            following = self.after(step.slug)
            reached = max(self._state.step, following, key=self._order.index)
            state = msgspec.structs.replace(
                self._state,
                step=reached,
                answers=self._state.answers.with_answer(accepted.answer),
            )
            try:
                self.file.save(state)
            except PlatformError as error:
                unsaved = Sentence("Your answer could not be saved: {why}", why=error.message)
                again = Again({"": unsaved}, status=500)
                fields = form.typed(step.secret_fields)
                return self._page(step, self.asked(step), fields, again)
            self._state = state
            if accepted.secrets is not None:
                self.pending.put(step.slug, Held(accepted.secrets, note))
        if note is not None:
            self.flash.put(Flash(note, good=True))
        return self._returning() if form.get(RETURN) == REVIEW else following

    def _returning(self) -> str:
        """Where a change from the review page leads: to what it made unfit, else back."""
        machine = self.machine()
        for step in self.steps.values():
            asked = self.asked(step, machine)
            answer = asked.answers.of(step.answer_type)
            if answer is not None and step.check(answer, asked):
                return step.slug
        return REVIEW

    def _page(
        self,
        step: AnyStep,
        asked: Question,
        fields: Mapping[str, list[str]],
        again: Again,
        *,
        notice: Sentence | None = None,
    ) -> Page:
        more = {**step.view(asked), **again.more}
        return Page(
            step,
            fields,
            again.errors,
            again.status,
            more,
            self._revision(step),
            self.pending.of(step.slug),
            asked.machine.problems,
            notice,
        )

    def _revision(self, step: AnyStep) -> str:
        """A word for what is answered to a step: another one once that is another."""
        answer = self._state.answers.of(step.answer_type)
        text = json.dumps(None if answer is None else msgspec.to_builtins(answer))
        return hashlib.sha256(text.encode()).hexdigest()[:_REVISION_LENGTH]


_CHANGED = Sentence(
    "This was answered in another tab or browser in the meantime. Check what you typed:"
    " it takes the place of the other answer when you continue."
)
