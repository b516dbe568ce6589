"""The flow of the wizard: which page comes next, and what a form changes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from platform_common import clock
from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.web.flash import Flash, FlashStore
from wizard_app.setup.answers import Answers
from wizard_app.setup.apply import journal
from wizard_app.setup.device_facts import DeviceFacts
from wizard_app.setup.pending import HeldSecrets, PendingSecrets
from wizard_app.setup.settings import JOURNAL, WizardSettings
from wizard_app.setup.snapshot import Snapshot, StoredState
from wizard_app.setup.state import DONE, REVIEW, WizardState, order
from wizard_app.setup.state_file import StateFile
from wizard_app.setup.steps.base import Accepted, AnyStep, CheckResult, Form, FormErrors
from wizard_app.state_store import StateStore, not_saved
from wizard_app.step_page import Page, shown

# The field of a form and of a URL that says where to continue.
RETURN = "return"
_STALE = 409


class Refused(NamedTuple):
    """Why nothing was changed, and the HTTP status."""

    why: Sentence
    status: int = 200


class Wizard:
    """One setup of one device; thread-safe."""

    def __init__(self, settings: WizardSettings, steps: Sequence[AnyStep]) -> None:
        self._settings = settings
        self.steps = {step.slug: step for step in steps}
        self.flash = FlashStore()
        self.file = StateFile(settings.state_file, steps)
        self._store = StateStore(self.file)
        self._order = order(steps)
        self._changing = threading.Lock()
        # True while setup is running: answers cannot be changed then.
        self.settled = False

    @property
    def state(self) -> WizardState:
        """The current step and answers."""
        return self._store.now().state

    def snapshot(self, machine: DeviceFacts | None = None) -> Snapshot:
        """An immutable view of everything, for one request."""
        return Snapshot(self.steps, machine or DeviceFacts(self._settings), self._store.now())

    def after(self, slug: str) -> str:
        """The next value of `step`."""
        return self._order[self._order.index(slug) + 1]

    def before(self, slug: str) -> str | None:
        """The previous value of `step`; None for the first."""
        place = self._order.index(slug)
        return self._order[place - 1] if place else None

    @property
    def count(self) -> int:
        """The number of pages to answer, including review."""
        return len(self.steps) + 1

    def number(self, slug: str) -> int:
        """The position of a step, from 1."""
        return self._order.index(slug) + 1

    def page(self, step: AnyStep) -> Page:
        """A step with its answer, or its suggestions."""
        snapshot = self.snapshot()
        asked, answer = snapshot.asked(step), snapshot.answer(step)
        if answer is None:
            return shown(snapshot, step, step.suggested(asked), FormErrors())
        return shown(snapshot, step, step.filled(answer), FormErrors(step.check(answer, asked)))

    def submit(self, step: AnyStep, form: Form) -> Page | str:
        """Handle a form; return its page again, or the value of `step` to continue with.

        Changes are durable before this returns, and in memory only after that.
        """
        before = self.snapshot()
        outcome = step.parse(form, before.asked(step))
        again = (
            outcome if isinstance(outcome, FormErrors) else self._take(step, form, outcome, before)
        )
        if again is None:
            return self._onward(step, form, before)
        now = self.snapshot(before.machine)
        notice = _CHANGED if again.status == _STALE or now.is_stale(step, form) else None
        return shown(now, step, step.typed(form), again, notice)

    def take_over(self, answers: Answers, *, replace: bool) -> str | Refused:
        """Replace all answers by `answers`; return the value of `step` to continue with.

        Refused without `replace` if there are answers already. Secrets of steps whose answer
        stays the same are kept.
        """
        machine = DeviceFacts(self._settings)
        shapes = [step.answer_type for step in self.steps.values()]
        with self._changing:
            before = self.snapshot(machine)
            if before.state.step == DONE:
                return DONE
            if self.settled:
                return REVIEW
            if any(before.answered()) and not replace:
                return Refused(Sentence("Tick the box to replace the answers given so far"))
            others = before.state.answers.without(shapes)
            state = msgspec.structs.replace(
                before.state, answers=Answers({**others.values, **answers.values})
            )
            found = Snapshot(self.steps, machine, StoredState(state))
            step = next((step.slug for step in found.unanswered()), REVIEW)
            same = {one.slug for one in found.answered() if found.answer(one) == before.answer(one)}
            unsaved = self._store.keep(
                msgspec.structs.replace(state, step=step), before.pending.only(same)
            )
        return step if unsaved is None else Refused(unsaved, 500)

    def settle(self, machine: DeviceFacts | None = None) -> Snapshot:
        """Block changes of the answers until `reopen`, and return them.

        If another process has completed setup, it is complete here too.
        """
        with self._changing:
            self.settled = True
            self._store.accept_done()
            return self.snapshot(machine)

    def reopen(self) -> None:
        """Allow changes of the answers again."""
        self.settled = False

    def finish(self) -> Sentence | None:
        """Mark setup as done and forget all secrets; return why that failed, or None."""
        with self._changing:
            state = msgspec.structs.replace(self.state, step=DONE, completed_at=clock.now())
            return self._store.keep(state, PendingSecrets())

    def forget_secrets(self) -> None:
        """Forget all secrets; the answers stay."""
        with self._changing:
            self._store.forget_secrets()

    def _take(
        self, step: AnyStep, form: Form, accepted: Accepted[Any], before: Snapshot
    ) -> FormErrors | None:
        """Test and store the answer of a form; return what the page shows if that fails."""
        if before.is_stale(step, form) and not before.has(step, accepted):
            return FormErrors(status=_STALE)
        passed = accepted.test() if accepted.test else CheckResult()
        return passed.again or self._put(step, accepted, passed, before)

    def _put(
        self, step: AnyStep, accepted: Accepted[Any], passed: CheckResult, before: Snapshot
    ) -> FormErrors | None:
        with self._changing:
            now = self.snapshot(before.machine)
            if now.state.step == DONE or self.settled:
                return None
            # Another browser may have answered while the test ran.
            if now.differs(before, step) and not now.has(step, accepted):
                return FormErrors(status=_STALE)
            state = msgspec.structs.replace(
                now.state,
                step=max(now.state.step, self.after(step.slug), key=self._order.index),
                answers=now.state.answers.with_answer(accepted.answer),
            )
            pending = now.pending
            if accepted.secrets is not None:
                pending = pending.having(step.slug, HeldSecrets(accepted.secrets, passed.note))
                kept = StoredState(state, pending)
                if (unsaved := self._forget_stored(step, before.machine, kept)) is not None:
                    return FormErrors({"": unsaved}, status=500)
            if (unsaved := self._store.keep(state, pending)) is not None:
                return FormErrors({"": unsaved}, status=500)
        if passed.note is not None:
            self.flash.put(Flash(passed.note, good=True, doubtful=passed.doubtful))
        return None

    def _forget_stored(
        self, step: AnyStep, machine: DeviceFacts, kept: StoredState
    ) -> Sentence | None:
        """Mark stored secrets as not stored when new ones replace them.

        Otherwise, if a restart loses the new ones, the device would keep the old ones.
        """
        snapshot = Snapshot(self.steps, machine, kept)
        ids = {one.id for _, one in snapshot.actions(step) if one.secrets} & snapshot.applied
        try:
            if ids:
                journal.forget(self._settings.paths.path_of(JOURNAL), ids)
        except PlatformError as error:
            return not_saved(error)
        return None

    def _onward(self, step: AnyStep, form: Form, before: Snapshot) -> str:
        now = self.snapshot(before.machine)
        if now.state.step == DONE:
            return DONE
        if self.settled:
            return REVIEW
        if form.get(RETURN) != REVIEW:
            return self.after(step.slug)
        # A change from the review page leads back there, or first to a step that it made invalid.
        unfit_before = {lack.step for lack in before.unfit()}
        unfit = (lack.step.slug for lack in now.unfit() if lack.step not in unfit_before)
        return next(unfit, REVIEW)


_CHANGED = Sentence(
    "This question was answered in another tab or browser in the meantime. Check what you "
    "typed: it replaces the other answer when you continue."
)
