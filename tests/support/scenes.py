"""Every page in every state: addresses, and what makes a dashboard show them so."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from flask import Flask, Response
from werkzeug.serving import make_server

from platform_common.paths import Paths
from platform_common.web.errors import error_page
from pwa_app.app import create_app
from pwa_app.settings import PwaSettings
from tests.support import dashboard_states, key_states, log_states, system_states
from tests.support.control_cli import FakeCtl

Prepare = Callable[[FakeCtl, Path], Mapping[str, str]]


class Scene(NamedTuple):
    """Addresses in one state; `prepare` gives the environment of the dashboard that shows them.

    It sets up the control CLI, and puts what else it needs into its folder.
    """

    state: str
    addresses: tuple[str, ...]
    prepare: Prepare


def _of_calls(
    states: Mapping[str, Callable[[FakeCtl], None]], *addresses: str
) -> tuple[Scene, ...]:
    """Scenes that differ in nothing but what the control CLI answers."""

    def prepared(answers: Callable[[FakeCtl], None]) -> Prepare:
        def prepare(ctl: FakeCtl, _: Path) -> Mapping[str, str]:
            answers(ctl)
            return ctl.environment

        return prepare

    return tuple(Scene(name, addresses, prepared(answers)) for name, answers in states.items())


def _sample(ctl: FakeCtl, _: Path) -> Mapping[str, str]:
    return ctl.environment | {"PWA_DEV_STUB": "1"}


# One address of every page.
EVERYWHERE = (
    *("/app/dashboard", "/app/update", "/app/logs", "/app/keys", "/app/keys/openai"),
    *("/app/system", "/app/system/diagnostics", "/app/voice", "/app/notifications", "/offline"),
)
SCENES: Mapping[str, tuple[Scene, ...]] = {
    "dashboard": _of_calls(dashboard_states.STATES, "/app/dashboard"),
    "update": _of_calls(dashboard_states.UPDATE_STATES, "/app/update"),
    "keys": _of_calls(key_states.STATES, "/app/keys", "/app/keys/openai", "/app/keys/bedrock"),
    "logs": tuple(
        Scene(name, (state.address,), state.prepare) for name, state in log_states.STATES.items()
    ),
    "system": _of_calls(system_states.STATES, *system_states.PAGES),
    "sample": (Scene("sample", EVERYWHERE, _sample),),
}
STATUSES = (400, 403, 404, 405, 413, 415, 418, 421, 429, 500, 503, 507)


def faulty_app() -> Flask:
    """A dashboard that answers `/error/<status>` with the page for that status."""
    paths = Paths.from_env({"PLATFORM_ROOT": "/nonexistent"})
    app = create_app(PwaSettings(paths=paths, control_cli=None))

    def error(status: int) -> Response:
        return error_page(status, number="0a1b2c3d")

    app.add_url_rule("/error/<int:status>", "error", error)
    return app


@contextlib.contextmanager
def serving(app: Flask) -> Iterator[str]:
    """Serve `app` in this process while the block lasts; its address."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def faulty_dashboard() -> contextlib.AbstractContextManager[str]:
    """Serve `faulty_app` while the block lasts; its address."""
    return serving(faulty_app())
