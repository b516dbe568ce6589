"""The wizard: the factory that puts its pages and their collaborators together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flask import Flask

import wizard_app
from platform_common.identity import device_name
from platform_common.web.application import new_application
from wizard_app import pages, review, sharing
from wizard_app.flow import Wizard
from wizard_app.settings import WizardSettings
from wizard_app.steps import STEPS
from wizard_app.steps.step import AnyStep


def create_app(settings: WizardSettings, *, steps: Sequence[AnyStep] = STEPS) -> Flask:
    """The wizard app (spec, first-boot wizard; contract, section 6).

    `steps` stand in for the usual ones. Raises `PlatformError` when the wizard's state can
    neither be read nor put aside.
    """
    app = new_application(
        "wizard_app",
        static=[Path(wizard_app.__path__[0]) / "static"],
        allowed_hosts=settings.allowed_hosts,
        after_preferences="/wizard",
        device_name=lambda: device_name(settings.paths, settings.device),
    )
    pages.install(app, Wizard(settings, steps))
    for feature in (review, sharing, pages):
        app.register_blueprint(feature.blueprint)
    return app
