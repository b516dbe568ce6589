"""The factory of the wizard app."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from flask import Flask

import wizard_app
from platform_common.records.device_identity import device_name
from platform_common.web.factory import new_application
from wizard_app import context
from wizard_app.access import gate
from wizard_app.access.sessions import boot_time, new_token
from wizard_app.access.token_file import TokenFile
from wizard_app.apply_job import ApplyJob, executor, remove_old_secrets
from wizard_app.chat import routes
from wizard_app.chat.conversation import Chat
from wizard_app.pages import another_device, answers_file, done, review
from wizard_app.pages import steps as step_pages
from wizard_app.setup.settings import WizardSettings
from wizard_app.setup.steps import STEPS
from wizard_app.setup.steps.base import AnyStep
from wizard_app.wizard import Wizard


def create_app(
    settings: WizardSettings,
    *,
    steps: Sequence[AnyStep] = STEPS,
    clock: Callable[[], float] = boot_time,
) -> Flask:
    """The wizard app (docs/reference/wizard-app.md).

    When this returns, the launch token is written. `steps` replaces the usual steps, and
    `clock`, in seconds, measures the age of sessions. Raises `PlatformError` if the token cannot
    be written, or if the wizard's state can neither be read nor renamed.
    """
    app = new_application(
        "wizard_app",
        static=[Path(wizard_app.__path__[0]) / "static"],
        # Setup renames the machine; browsers that use the old name must see the last page.
        allowed_hosts=settings.allowed_hosts | {socket.gethostname().lower().rstrip(".")},
        after_preferences="/wizard",
        device_name=lambda: device_name(settings.paths, settings.device),
    )
    wizard = Wizard(settings, steps)
    remove_old_secrets(settings)
    review.install(app, ApplyJob(wizard, settings.paths, executor(settings)))
    routes.install(app, Chat(settings))
    gate.install(app, settings, forget=wizard.forget_secrets, clock=clock)
    context.install(app, wizard)
    for feature in (another_device, routes, review, done, answers_file, step_pages):
        app.register_blueprint(feature.blueprint)
    if settings.require_token:
        TokenFile(settings.token_file).write(settings.token or new_token())
    return app
