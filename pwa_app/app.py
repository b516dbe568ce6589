"""The factory of the dashboard app."""

from __future__ import annotations

from pathlib import Path

from flask import Flask

import pwa_app
from platform_common.message import Sentence
from platform_common.records.device_identity import device_name
from platform_common.web.factory import new_application
from pwa_app import context, pwa_install
from pwa_app.control_client import ControlCli, SubprocessCli
from pwa_app.dashboard import page as dashboard
from pwa_app.keys import page as keys
from pwa_app.logs import page as logs
from pwa_app.push import page as push
from pwa_app.settings import PwaSettings
from pwa_app.stub import StubCli
from pwa_app.system import page as system
from pwa_app.voice import page as voice


def create_app(settings: PwaSettings, *, cli: ControlCli | None = None) -> Flask:
    """The dashboard app (docs/reference/pwa-app.md).

    `cli` replaces the control CLI that the settings name.
    """
    app = new_application(
        "pwa_app",
        static=[Path(pwa_app.__path__[0]) / "static"],
        allowed_hosts=settings.allowed_hosts,
        after_preferences="/app/system",
        device_name=lambda: device_name(settings.paths),
    )
    context.install(app, settings, cli or _control_cli(settings))
    push.install(app, settings)
    for feature in (dashboard, logs, keys, push, system, voice, pwa_install):
        app.register_blueprint(feature.blueprint)
    return app


def _control_cli(settings: PwaSettings) -> ControlCli:
    if settings.control_cli is None:
        return StubCli(Sentence("The control CLI was not found, so these are sample values."))
    if settings.dev_stub:
        return StubCli(Sentence("The dashboard runs in dev-stub mode, so these are sample values."))
    variables = settings.paths.variables()
    return SubprocessCli(settings.control_cli, variables, limit_s=settings.call_limit_s)
