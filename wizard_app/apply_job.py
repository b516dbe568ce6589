"""Setting up, as the pages see it: begun once, told while it goes on, and how it ended."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from typing import NamedTuple

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.paths import Paths
from platform_common.root_helper.messages import SetupProgress
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
from wizard_app.setup.apply.progress import Reported
from wizard_app.setup.plan.plan import Plan, build_plan, plan_digest
from wizard_app.setup.settings import COMMANDS, WizardSettings
from wizard_app.setup.snapshot import Standing
from wizard_app.setup.state import DONE
from wizard_app.wizard import Wizard


class Outcome(NamedTuple):
    """How a request to set up went: `why` and `advice` say why not.

    `busy` when it goes on for somebody else; `changed` when the plan is not the one that
    was shown; `what` is the action that did not work, if it was one.
    """

    done: bool = False
    busy: bool = False
    changed: bool = False
    what: Sentence | None = None
    why: Sentence | None = None
    advice: Sentence | None = None


class Applying:
    """Setting up the device of one wizard, one at a time."""

    def __init__(self, wizard: Wizard, device: Paths, execute: Execute) -> None:
        self._wizard = wizard
        self._device = device
        self._execute = execute
        self._lock = threading.Lock()
        # The plan that is being carried out, if any, and what became of its actions, by id.
        self.running: Plan | None = None
        self.progress: Mapping[str, Reported] = {}
        # How the last try of this process ended.
        self.last = Outcome()

    def apply(self, seen: str = "") -> Outcome:
        """Set up what was answered; `seen` is the digest of the plan that was shown, if any."""
        if not self._lock.acquire(blocking=False):
            return Outcome(busy=True)
        try:
            return self._apply(seen)
        finally:
            self.running = None
            self._wizard.reopen()
            self._lock.release()

    def _apply(self, seen: str) -> Outcome:
        standing = self._wizard.settle()
        if (needless := _needless(standing)) is not None:
            return needless
        try:
            with one_at_a_time(self._device):
                # While we waited, another process may have finished.
                return self._act(self._wizard.settle(standing.machine), seen)
        except LockedError:
            return Outcome(busy=True)
        except PlatformError as error:
            self.last = Outcome(why=error.said, advice=error.advice or AGAIN)
            return self.last

    def _act(self, standing: Standing, seen: str) -> Outcome:
        if (needless := _needless(standing)) is not None:
            return needless
        plan = build_plan(standing)
        if seen and seen != plan_digest(plan):
            return Outcome(changed=True)
        self.running, self.progress = plan, {}
        try:
            self._execute(standing, plan, self._note)
        except ApplyError as error:
            self.last = Outcome(what=error.what, why=error.problem, advice=error.advice)
            return self.last
        unsaved = self._wizard.finish()
        self.last = Outcome(done=unsaved is None, why=unsaved)
        return self.last

    def _note(self, action: SetupProgress) -> None:
        # A new mapping, as pages read the old one in other threads.
        self.progress = {**self.progress, action.id: action}


def _needless(standing: Standing) -> Outcome | None:
    """How it ends before anything is done: it is done already, or something lacks."""
    if standing.state.step == DONE:
        return Outcome(done=True)
    return Outcome() if standing.lacks() else None


def executor(settings: WizardSettings) -> Execute:
    """How this wizard sets up: on the machine, or in a folder, its commands written down.

    On the machine a wizard that is not root has the root helper do it, where there is one.
    """
    device = settings.paths
    # What a wizard left behind that was killed meanwhile; the next try looks as well.
    with contextlib.suppress(PlatformError), _root_alone(settings):
        tidy(device)
    run = on_machine(device) if settings.production else recorded(device.root / COMMANDS)

    def act(standing: Standing, plan: Plan, on_progress: OnProgress) -> None:
        execute(plan, device, run, setup=standing.state.started_at, on_progress=on_progress)

    def to_its_end(standing: Standing, plan: Plan, on_progress: OnProgress) -> None:
        with _root_alone(settings):
            act(standing, plan, on_progress)
            if os.geteuid() == 0:
                completion.complete(device, standing, plan)

    return or_by_helper(settings, to_its_end) if settings.production else act


def _root_alone(settings: WizardSettings) -> contextlib.AbstractContextManager[None]:
    """Keep the root helper from setting up the machine meanwhile; only root can."""
    if settings.production and os.geteuid() == 0:
        return completion.alone(settings.paths)
    return contextlib.nullcontext()
