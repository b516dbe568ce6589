"""The addresses of the wizard, read from the app, so that tests of all of them know new ones."""

from __future__ import annotations

import re

from flask import Flask

from tests.support.http_tables import addresses
from wizard_app.app import create_app
from wizard_app.settings import WizardSettings
from wizard_app.steps import STEPS

_PLACE = re.compile(r"<[^>]+>")
SLUGS = [step.slug for step in STEPS]


def an_app() -> Flask:
    """A wizard of no device, to ask for its routes."""
    nowhere = {"PLATFORM_ROOT": "/nonexistent", "WIZARD_DEV_OUT": "/nonexistent"}
    return create_app(WizardSettings.from_env(nowhere | {"WIZARD_NO_TOKEN": "1"}))


def placed(endpoint: str) -> list[str]:
    """What stands in the place of an address's variable."""
    return ["style.css"] if endpoint == "static" else SLUGS


ROUTES = addresses(an_app(), placed)
ENDPOINTS = sorted(
    (
        rule.endpoint,
        re.sub(r"<[^>]+>", placed(rule.endpoint)[0], rule.rule),
        sorted(rule.methods or ()),
    )
    for rule in an_app().url_map.iter_rules()
)
READABLE = sorted(path for path, methods in ROUTES.items() if "GET" in methods)
CHANGING = sorted(path for path, methods in ROUTES.items() if "POST" in methods)
# What is answered to anybody.
PUBLIC = {path for path in ROUTES if path == "/healthz" or path.startswith("/static/")}
STEP_PAGES = [f"/wizard/{slug}" for slug in SLUGS]
