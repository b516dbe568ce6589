"""Setting up, as the pages see it: begun once, told while it goes on, and how it ended."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import NamedTuple

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.storage.file_lock import LockedError
from wizard_app.setup.apply import completion
from wizard_app.setup.apply.command_runners import on_machine, recorded
from wizard_app.setup.apply.executor import AGAIN, ApplyError, Execute, execute, tidy
from wizard_app.setup.apply.helper_client import or_by_helper
from wizard_app.setup.plan.plan import Plan, build_plan, mark
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

    def __init__(self, wizard: Wizard, execute: Execute) -> None:
        self._wizard = wizard
        self._execute = execute
        self._lock = threading.Lock()
        # What is being done now, if anything is; and how the last try of this process ended.
        self.running: Plan | None = None
        self.last = Outcome()

    def apply(self, seen: str = "") -> Outcome:
        """Do all that was answered; `seen` is the mark of the plan that was looked at, if any."""
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
            with self._wizard.alone():
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
        if seen and seen != mark(plan):
            return Outcome(changed=True)
        self.running = plan
        try:
            self._execute(standing, plan)
        except ApplyError as error:
            self.last = Outcome(what=error.what, why=error.problem, advice=error.advice)
            return self.last
        unsaved = self._wizard.finish()
        self.last = Outcome(done=unsaved is None, why=unsaved)
        return self.last


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
    with contextlib.suppress(PlatformError):
        tidy(device)
    run = on_machine(device) if settings.production else recorded(device.root / COMMANDS)

    def act(standing: Standing, plan: Plan) -> None:
        execute(plan, device, run, setup=standing.state.started_at)

    def to_its_end(standing: Standing, plan: Plan) -> None:
        if os.geteuid() != 0:
            return act(standing, plan)
        # The file that says that a device is set up is root's.
        with completion.alone(device):
            act(standing, plan)
            completion.complete(device, standing, plan)
        return None

    return or_by_helper(settings, to_its_end) if settings.production else act
