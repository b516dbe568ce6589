"""The key pages: list, test and replace providers' keys."""

from __future__ import annotations

from typing import NamedTuple

from flask import Blueprint, abort, redirect, render_template, request
from werkzeug import Response
from werkzeug.exceptions import MethodNotAllowed

from platform_common.control_answers import Model
from platform_common.message import Sentence
from platform_common.validation import check_id, passes
from platform_common.web.factory import translate
from pwa_app.context import context, take_flash
from pwa_app.keys import rotation
from pwa_app.overview import MODELS

blueprint = Blueprint("keys", __name__)
# Used by POST routes, so a provider with such an id could not have a page.
_ACTIONS = ("rotate", "test")


class Row(NamedTuple):
    """A provider for the page; one that is not `usable` has an invalid id."""

    model: Model
    name: str
    kind: str
    state: Sentence
    usable: bool

    @property
    def has_value(self) -> bool:
        """Whether it has a stored value."""
        return self.model.configured or bool(self.model.masked_key_prefix)


@blueprint.get("/app/keys")
def keys() -> str:
    """List the providers with the states of their keys, and show the waiting message."""
    found = context().load(MODELS)
    rows = sorted(map(_row, found.value), key=lambda row: not row.model.active)
    groups = (
        [row for row in rows if row.has_value or row.model.active],
        [row for row in rows if not (row.has_value or row.model.active)],
    )
    return render_template(
        "pwa/keys.html", found=found, groups=groups, flash=take_flash(context().flash)
    )


@blueprint.get("/app/keys/<provider_id>")
def key(provider_id: str) -> str:
    """Show one provider, with all values that its key consists of."""
    found = context().load(MODELS)
    rows = [row for row in map(_row, found.value) if row.usable and row.model.id == provider_id]
    if not rows and provider_id in _ACTIONS:
        raise MethodNotAllowed(["POST"])
    if not rows and (found.value or not found.stub):
        abort(404)
    return render_template(
        "pwa/key.html",
        found=found,
        row=rows[0] if rows else None,
        flash=take_flash(context().flash),
    )


@blueprint.post("/app/keys/rotate")
def rotate() -> Response:
    """Store a new key; the next page shows the result."""
    here = context()
    here.flash.put(rotation.rotate(here.cli, request.form))
    here.single_flight.forget(MODELS.words)
    return redirect("/app/keys")


@blueprint.post("/app/keys/test")
def test() -> Response:
    """Test the stored key of a provider; its page shows the result."""
    provider_id = request.form.get("provider", "")
    here = context()
    here.flash.put(rotation.test_stored(here.cli, provider_id))
    return redirect(f"/app/keys/{provider_id}" if passes(check_id, provider_id) else "/app/keys")


def _row(model: Model) -> Row:
    kind, state = _state(model)
    name = translate(model.display_name) if model.display_name else model.id
    return Row(model, name, kind, state, passes(check_id, model.id))


def _state(model: Model) -> tuple[str, Sentence]:
    if model.configured:
        if model.active:
            return "ok", Sentence("Active")
        return "ok", Sentence("Address set") if model.takes_address else Sentence("Key set")
    if model.masked_key_prefix:
        return "warn", Sentence("Incomplete")
    kind = "warn" if model.active else "none"
    if model.takes_address:
        return kind, Sentence("No address")
    return kind, Sentence("Active, no key") if model.active else Sentence("No key")
