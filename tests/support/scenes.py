"""Every page in every state: the addresses, and how to make an app show the state."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from flask import Flask, Response
from werkzeug.serving import make_server

from platform_common.paths import Paths
from platform_common.web.errors import error_page
from pwa_app.app import create_app
from pwa_app.settings import PwaSettings
from tests.support import dashboard_states, key_states, log_states, system_states, wizard_states
from tests.support.control_cli import FakeCtl
from tests.support.pseudo_language import values_of
from tests.support.wizard_states import View

Prepare = Callable[[FakeCtl, Path], Mapping[str, str]]

# Values that look like anything; the other texts are those of other states.
_ODD = frozenset({"hostile", "long", "huge"})
# One address of every page of the dashboard.
EVERYWHERE = (
    *("/app/dashboard", "/app/update", "/app/logs", "/app/keys", "/app/keys/openai"),
    *("/app/system", "/app/system/diagnostics", "/app/voice", "/app/notifications", "/offline"),
)
STATUSES = (400, 403, 404, 405, 413, 415, 418, 421, 429, 500, 503, 507)


class Stage(NamedTuple):
    """An app that shows a scene: its address, and the values that are not our text."""

    url: str
    known: set[str]


Staged = Callable[[Path], contextlib.AbstractContextManager[Stage]]


class Scene(NamedTuple):
    """Pages of an app in one state; `staged` serves that app, with its files in a folder.

    If it is `odd`, its values look like our texts, or like markup.
    """

    views: tuple[View, ...]
    staged: Staged
    odd: bool


def _of_dashboard(prepare: Prepare) -> Staged:
    """Serve a dashboard; `prepare` sets up its control CLI, and returns its environment."""

    @contextlib.contextmanager
    def staged(folder: Path) -> Iterator[Stage]:
        ctl = FakeCtl(folder / "ctl")
        (folder / "device").mkdir(exist_ok=True)
        environment = {"PLATFORM_ROOT": str(folder / "device"), **prepare(ctl, folder)}
        app = create_app(PwaSettings.from_env(environment))
        with mock.patch.dict(os.environ, PATH=environment["PATH"]), serving(app) as url:
            yield Stage(url, values_of(ctl))

    return staged


def _answered(answers: Callable[[FakeCtl], None]) -> Prepare:
    """The preparation of a state in which only the answers of the control CLI differ."""

    def prepare(ctl: FakeCtl, _: Path) -> Mapping[str, str]:
        answers(ctl)
        return ctl.environment

    return prepare


def _sample(ctl: FakeCtl, _: Path) -> Mapping[str, str]:
    return ctl.environment | {"PWA_DEV_STUB": "1"}


def _of_wizard(scene: wizard_states.WizardScene) -> Staged:
    @contextlib.contextmanager
    def staged(folder: Path) -> Iterator[Stage]:
        with serving(scene.app(folder)) as url:
            yield Stage(url, wizard_states.known_values())

    return staged


@contextlib.contextmanager
def _faulty(_: Path) -> Iterator[Stage]:
    with serving(_faulty_app()) as url:
        yield Stage(url, set())


def _scenes() -> Iterator[tuple[str, Scene]]:
    of_calls: tuple[tuple[str, Mapping[str, Callable[[FakeCtl], None]], tuple[str, ...]], ...] = (
        ("dashboard", dashboard_states.STATES, ("/app/dashboard",)),
        ("update", dashboard_states.UPDATE_STATES, ("/app/update",)),
        ("keys", key_states.STATES, ("/app/keys", "/app/keys/openai", "/app/keys/bedrock")),
        ("system", system_states.STATES, system_states.PAGES),
    )
    prepared = [
        (f"{page}-{state}", addresses, _answered(answers), state)
        for page, states, addresses in of_calls
        for state, answers in states.items()
    ]
    prepared += [
        (f"logs-{name}", (state.address,), state.prepare, name)
        for name, state in log_states.STATES.items()
    ]
    prepared.append(("sample", EVERYWHERE, _sample, ""))
    for name, addresses, prepare, state in prepared:
        views = tuple(View(address, address) for address in addresses)
        yield name, Scene(views, _of_dashboard(prepare), state in _ODD)
    errors = tuple(View(str(status), f"/error/{status}", status=status) for status in STATUSES)
    yield "errors", Scene(errors, _faulty, odd=False)
    for state, scene in wizard_states.SCENES.items():
        yield f"wizard-{state}", Scene(scene.views, _of_wizard(scene), state in _ODD)


SCENES: Mapping[str, Scene] = dict(_scenes())


def _faulty_app() -> Flask:
    """A dashboard that answers `/error/<status>` with the page for that status."""
    paths = Paths.from_env({"PLATFORM_ROOT": "/nonexistent"})
    app = create_app(PwaSettings(paths=paths, control_cli=None))

    def error(status: int) -> Response:
        return error_page(status, number="0a1b2c3d")

    app.add_url_rule("/error/<int:status>", "error", error)
    return app


@contextlib.contextmanager
def serving(app: Flask) -> Iterator[str]:
    """Serve `app` in this process until the block ends; yield its address."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
