"""The pages' collaborators, created once with the app and shared by all requests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from flask import Flask, current_app, request

from platform_common.web.flash import Flash, FlashStore
from pwa_app.control_client import CliQuery, ControlCli, Slice, V
from pwa_app.keys.known_secrets import KnownSecrets
from pwa_app.logs.journal import Journal
from pwa_app.settings import PwaSettings
from pwa_app.single_flight import SingleFlight

_NAME = "pwa_app"
# More than there are different calls, so that hanging calls do not hold up others.
_CALLS_AT_ONCE = 32


class Context(NamedTuple):
    """The collaborators of the pages."""

    settings: PwaSettings
    cli: ControlCli
    single_flight: SingleFlight
    flash: FlashStore
    voice_flash: FlashStore
    secrets: KnownSecrets
    journal: Journal

    def load(self, view: CliQuery[V]) -> Slice[V]:
        """The answer to one call, shared by concurrent requests for the same call."""
        (found,) = self.load_all([view])
        return found

    def load_all(self, views: Sequence[CliQuery[Any]]) -> list[Slice[Any]]:
        """The answers to several calls, made in parallel."""
        if self.cli.sample is not None:
            # The stub starts no program, so there is nothing to wait for or to share.
            return [view.load(self.cli) for view in views]
        join = self.single_flight.join
        runs = [join(view.words, partial(view.load, self.cli)) for view in views]
        return [run.result() for run in runs]


def install(app: Flask, settings: PwaSettings, cli: ControlCli) -> None:
    """Register the context with `app`."""
    secrets = KnownSecrets(settings.paths)
    journal = Journal(secrets, settings.journal_dir, limit_s=settings.call_limit_s)
    app.extensions[_NAME] = Context(
        settings, cli, SingleFlight(_CALLS_AT_ONCE), FlashStore(), FlashStore(), secrets, journal
    )


def context() -> Context:
    """The context of the app that answers this request."""
    return cast("Context", current_app.extensions[_NAME])


def take_flash(store: FlashStore) -> Flash | None:
    """Take the waiting message, but only if somebody will see the page: it is shown once."""
    looks = request.method == "GET" and "prefetch" not in request.headers.get("Sec-Purpose", "")
    return store.take() if looks else None
