"""The user's preferences: theme and language, each in a plain cookie."""

from __future__ import annotations

from collections.abc import Mapping

from flask import Blueprint, current_app, redirect, request
from werkzeug import Response

from platform_common.web.language import LANGUAGES

THEMES = ("auto", "light", "dark")
_CHOICES: Mapping[str, tuple[str, ...]] = {"theme": THEMES, "language": ("auto", *LANGUAGES)}
_YEAR_S = 365 * 24 * 3600

blueprint = Blueprint("preferences", __name__)


def chosen(name: str) -> str:
    """The user's choice for `name`; `auto` without one."""
    value = request.cookies.get(_cookie(name), "")
    return value if value in _CHOICES[name] else "auto"


@blueprint.post("/preferences")
def choose() -> Response:
    """Store valid choices, delete those that are `auto`, and redirect."""
    response = redirect(current_app.config["AFTER_PREFERENCES"])
    for name, choices in _CHOICES.items():
        value = request.form.get(name)
        if value == "auto":
            response.delete_cookie(_cookie(name), samesite="Lax", httponly=True)
        elif value in choices:
            response.set_cookie(
                _cookie(name), value, max_age=_YEAR_S, samesite="Lax", httponly=True
            )
    return response


def _cookie(name: str) -> str:
    return f"platform-{name}"
