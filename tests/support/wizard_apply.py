"""Applying setup to a folder, with commands that wait, fail or cut the power on request."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from flask import Flask

from platform_common.message import Sentence
from wizard_app.app import create_app
from wizard_app.apply_job import ApplyJob
from wizard_app.pages import review
from wizard_app.setup.apply.command_runners import CommandError
from wizard_app.setup.apply.executor import OnProgress, execute
from wizard_app.setup.plan.actions import RunCommand
from wizard_app.setup.plan.plan import Plan
from wizard_app.setup.settings import WizardSettings
from wizard_app.setup.snapshot import Snapshot

_LONGEST_S = 60


class PowerCutError(BaseException):
    """Ends an attempt as a power cut does: none of our code handles it."""


class Commands:
    """Commands that are recorded; those that contain a word of `failing` fail.

    Those that contain `slow` wait for `go_on`, and those that contain `cut` end everything.
    """

    def __init__(self, *, failing: str = "", slow: str = "", cut: str = "") -> None:
        self.failing, self.slow, self.cut = failing, slow, cut
        self.run: list[tuple[str, ...]] = []
        self.is_waiting, self.go_on = threading.Event(), threading.Event()

    def __call__(self, command: RunCommand) -> None:
        """Behave as a command would."""
        words = command.command
        self.run.append(command.argv)
        if self.slow and self.slow in words:
            self.is_waiting.set()
            self.go_on.wait(_LONGEST_S)
        if self.failing and self.failing in words:
            why = Sentence(
                "{program} ended with status {status}: {why}",
                program=command.argv[0],
                status=1,
                why="Could not set property: <b>Access denied</b>",
            )
            raise CommandError(why, hint="Look into the log of this device.")
        if self.cut and self.cut in words:
            raise PowerCutError


def wizard_with(commands: Commands, env: Mapping[str, str]) -> Flask:
    """A wizard with the environment `env` and these commands."""
    settings = WizardSettings.from_env(env)
    app = create_app(settings)

    def act(snapshot: Snapshot, plan: Plan, on_progress: OnProgress) -> None:
        setup = snapshot.state.started_at
        execute(plan, settings.paths, commands, setup=setup, on_progress=on_progress)

    review.install(app, ApplyJob(app.extensions["wizard_app"], settings.paths, act))
    return app
