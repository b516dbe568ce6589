"""The wizard: the factory that puts its pages and their collaborators together."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from flask import Flask

import wizard_app
from platform_common.records.device_identity import device_name
from platform_common.web.factory import new_application
from wizard_app.access import gate
from wizard_app.access.sessions import boot_time, new_token
from wizard_app.access.token_file import TokenFile
from wizard_app.apply_job import Applying, executor
from wizard_app.chat import routes
from wizard_app.chat.conversation import Chat
from wizard_app.pages import another_device, answers_file, done, review
from wizard_app.pages import steps as pages
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
    """The wizard app (spec, first-boot wizard; contract, section 6).

    Its launch token is at its place when this returns. `steps` stand in for the usual
    ones, and `clock`, in seconds, for what the age of a session is told by. Raises
    `PlatformError` when the token cannot be written, or the wizard's state can neither be
    read nor put aside.
    """
    app = new_application(
        "wizard_app",
        static=[Path(wizard_app.__path__[0]) / "static"],
        # Setting up gives the machine another name: who came by this one is to see the end.
        allowed_hosts=settings.allowed_hosts | {socket.gethostname().lower().rstrip(".")},
        after_preferences="/wizard",
        device_name=lambda: device_name(settings.paths, settings.device),
    )
    wizard = Wizard(settings, steps)
    review.install(app, Applying(wizard, settings.paths, executor(settings)))
    routes.install(app, Chat(settings))
    gate.install(app, settings, forget=wizard.forget_secrets, clock=clock)
    pages.install(app, wizard)
    for feature in (another_device, routes, review, done, answers_file, pages):
        app.register_blueprint(feature.blueprint)
    if settings.require_token:
        TokenFile(settings.token_file).write(settings.token or new_token())
    return app
