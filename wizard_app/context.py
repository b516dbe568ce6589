"""The wizard of the app that answers a request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from flask import Flask, current_app
from werkzeug.routing import AnyConverter, BaseConverter, Map

from wizard_app.wizard import Wizard

_NAME = "wizard_app"


def install(app: Flask, wizard: Wizard) -> None:
    """Register the wizard with `app`; call it before registering the blueprint."""
    app.extensions[_NAME] = wizard
    app.url_map.converters["step"] = _one_of(wizard.steps)


def _one_of(slugs: Iterable[str]) -> type[BaseConverter]:
    """A URL converter for step names, so that other addresses do not share their methods."""

    class StepConverter(AnyConverter):
        def __init__(self, url_map: Map) -> None:
            super().__init__(url_map, *slugs)

    return StepConverter


def wizard() -> Wizard:
    """The wizard of the app that answers this request."""
    return cast("Wizard", current_app.extensions[_NAME])
