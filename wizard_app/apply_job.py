"""The setup job for the pages: starts it once, and has its progress and outcome."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from typing import NamedTuple

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.paths import Paths
from platform_common.storage.file_lock import LockedError
from wizard_app.setup.apply import completion
from wizard_app.setup.apply.command_runners import on_machine, recorded
from wizard_app.setup.apply.executor import (
    AGAIN,
    ApplyError,
    Execute,
    OnProgress,
    execute,
    one_at_a_time,
    tidy,
)
from wizard_app.setup.apply.helper_client import or_by_helper
from wizard_app.setup.apply.progress import Reported, SetupProgress
from wizard_app.setup.plan.plan import Plan, build_plan, plan_digest
from wizard_app.setup.settings import COMMANDS, WizardSettings
from wizard_app.setup.snapshot import Snapshot
from wizard_app.setup.state import DONE
from wizard_app.wizard import Wizard


class Outcome(NamedTuple):
    """The outcome of a request to set up; `why` and `advice` explain a failure.

    `busy` if another setup is running; `changed` if the plan differs from the one that was
    shown; `what` is the failed action, if any.
    """

    done: bool = False
    busy: bool = False
    changed: bool = False
    what: Sentence | None = None
    why: Sentence | None = None
    advice: Sentence | None = None


class ApplyJob:
    """Sets up the device of one wizard, one attempt at a time."""

    def __init__(self, wizard: Wizard, device: Paths, execute: Execute) -> None:
        self._wizard = wizard
        self._device = device
        self._execute = execute
        self._lock = threading.Lock()
        # The running plan, if any, and the states of its actions by id.
        self.running: Plan | None = None
        self.progress: Mapping[str, Reported] = {}
        # The outcome of this process's last attempt.
        self.last = Outcome()

    def apply(self, seen: str = "") -> Outcome:
        """Apply the answers; `seen` is the digest of the plan that was shown, if any."""
        if not self._lock.acquire(blocking=False):
            return Outcome(busy=True)
        try:
            return self._apply(seen)
        finally:
            self.running = None
            self._wizard.reopen()
            self._lock.release()

    def _apply(self, seen: str) -> Outcome:
        snapshot = self._wizard.settle()
        if (needless := _needless(snapshot)) is not None:
            return needless
        try:
            with one_at_a_time(self._device):
                # Another process may have completed setup while this one waited.
                return self._act(self._wizard.settle(snapshot.machine), seen)
        except LockedError:
            return Outcome(busy=True)
        except PlatformError as error:
            self.last = Outcome(why=error.said, advice=error.advice or AGAIN)
            return self.last

    def _act(self, snapshot: Snapshot, seen: str) -> Outcome:
        if (needless := _needless(snapshot)) is not None:
            return needless
        plan = build_plan(snapshot)
        if seen and seen != plan_digest(plan):
            return Outcome(changed=True)
        self.running, self.progress = plan, {}
        try:
            self._execute(snapshot, plan, self._note)
        except ApplyError as error:
            self.last = Outcome(what=error.what, why=error.problem, advice=error.advice)
            return self.last
        unsaved = self._wizard.finish()
        self.last = Outcome(done=unsaved is None, why=unsaved)
        return self.last

    def _note(self, action: SetupProgress) -> None:
        # A new mapping, because pages in other threads read the old one.
        self.progress = {**self.progress, action.id: action}


def _needless(snapshot: Snapshot) -> Outcome | None:
    """Return the outcome if there is nothing to do or something is missing, else None."""
    if snapshot.state.step == DONE:
        return Outcome(done=True)
    return Outcome() if snapshot.lacks() else None


def remove_old_secrets(settings: WizardSettings) -> None:
    """Remove secrets that a killed wizard left behind; each attempt looks for them too."""
    with contextlib.suppress(PlatformError), _root_alone(settings):
        tidy(settings.paths)


def executor(settings: WizardSettings) -> Execute:
    """How this wizard sets up a device: the machine, or a folder that only records commands.

    On a machine, a wizard without root asks the root helper if there is one.
    """
    device = settings.paths
    run = on_machine(device) if settings.production else recorded(device.root / COMMANDS)

    def act(snapshot: Snapshot, plan: Plan, on_progress: OnProgress) -> None:
        execute(plan, device, run, setup=snapshot.state.started_at, on_progress=on_progress)

    def to_its_end(snapshot: Snapshot, plan: Plan, on_progress: OnProgress) -> None:
        with _root_alone(settings):
            act(snapshot, plan, on_progress)
            if os.geteuid() == 0:
                completion.complete(device, snapshot, plan)

    return or_by_helper(settings, to_its_end) if settings.production else act


def _root_alone(settings: WizardSettings) -> contextlib.AbstractContextManager[None]:
    """Keep the root helper from setting up the machine at the same time; only root can."""
    if settings.production and os.geteuid() == 0:
        return completion.alone(settings.paths)
    return contextlib.nullcontext()
