"""A real browser, Debian's Chromium, and the apps that it opens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Playwright,
    sync_playwright,
)

from tests.support.browsers import CHROMIUM, FLAGS
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.fonts import FONTS, Environment, only
from tests.support.raw_server import RawServer, serving
from tests.support.web_servers import Served, served

# Chromium's message about a page with an error status.
_FAILED = "Failed to load resource: the server responded"
# Its message about a header that only counts at secure addresses.
_IGNORED = "The Cross-Origin-Opener-Policy header has been ignored"
# Its message if a page is left, or loads slowly, during the transition to the next.
_ABORTED = "Transition was aborted"

OpenPage = Callable[..., Page]
ServeDashboard = Callable[..., Served]
ServeWizard = Callable[..., Served]


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def fonts(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The environment of a browser that does not use the fonts of the machine."""
    return only(tmp_path_factory.mktemp("fonts"), *FONTS.values())


@pytest.fixture(scope="session")
def browser(playwright: Playwright, fonts: Environment) -> Iterator[Browser]:
    """Chromium, started once for all tests; each context is a fresh browser to a page."""
    started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, env=fonts)
    yield started
    started.close()


# Pages are closed before the apps, because they sometimes send requests.
@pytest.fixture
def open_page(
    browser: Browser, serve_dashboard: ServeDashboard, serve_wizard: ServeWizard
) -> Iterator[OpenPage]:
    """Open an address: `open_page(url, phone=True, dark=True, java_script_enabled=False, …)`.

    Additional keywords are options of the browser's context. Warnings and errors on the console
    make the test fail, and so does a dialog, which only foreign markup would open.
    """
    said: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        url = message.page.url if message.page else ""
        # Some tests open addresses that answer with an error.
        opened = message.location.get("url") == url and message.text.startswith(_FAILED)
        if message.type in ("error", "warning") and not opened and _IGNORED not in message.text:
            said.append(f"{url}: {message.text}")

    def fail(error: Error) -> None:
        if not str(error).startswith(_ABORTED):
            said.append(str(error))

    def dismiss(dialog: Dialog) -> None:
        said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    with contextlib.ExitStack() as opened:

        def open_(url: str, *, phone: bool = False, dark: bool = False, **options: Any) -> Page:
            context = browser.new_context(
                viewport={"width": 320, "height": 640} if phone else {"width": 1280, "height": 900},
                color_scheme="dark" if dark else "light",
                # Without this, axe would also check the colours in the middle of a transition.
                reduced_motion="reduce",
                **options,
            )
            opened.callback(context.close)
            page = context.new_page()
            page.on("pageerror", fail)
            page.on("console", listen)
            page.on("dialog", dismiss)
            page.goto(url)
            return page

        yield open_
    assert said == []


@pytest.fixture(
    params=[
        pytest.param(True, id="scripts"),
        pytest.param(False, id="no-scripts", marks=pytest.mark.long),
    ]
)
def scripts(request: pytest.FixtureRequest) -> bool:
    """Whether the browser runs scripts; the test runs both ways."""
    return bool(request.param)


@pytest.fixture
def stranger(browser: Browser) -> Iterator[Page]:
    """A page whose console is not checked: for other sites and lost connections."""
    with browser.new_context(reduced_motion="reduce") as context:
        yield context.new_page()


@pytest.fixture(scope="session")
def foreign() -> Iterator[RawServer]:
    """Another site, with an empty page at `/`."""
    page = b"<!DOCTYPE html><title>Elsewhere</title>"
    with serving({"/": page, "/favicon.ico": b""}) as server:
        yield server


@pytest.fixture
def ctl(tmp_path: Path) -> FakeCtl:
    """A stand-in for the control CLI; a call fails unless a test has given it an answer."""
    return FakeCtl(tmp_path / "ctl")


@pytest.fixture
def serve_dashboard(tmp_path: Path, device: Device) -> Iterator[ServeDashboard]:
    """Serve a dashboard of `device` under gunicorn; keywords are added to its environment.

    With `host` it listens there, and not only on loopback.
    """
    with contextlib.ExitStack() as running:

        def serve(*, host: str = "127.0.0.1", **environment: str) -> Served:
            variables = {"PLATFORM_ROOT": str(device.root)} | environment
            log = tmp_path / "pwa-app.log"
            return running.enter_context(served("pwa-app", variables, log, host=host))

        yield serve


@pytest.fixture
def serve_wizard(tmp_path: Path, device: Device) -> Iterator[ServeWizard]:
    """Serve a wizard that sets up `tmp_path / "dev-out"`; keywords are added to its environment.

    It reads from there, then from `device`. It asks for no launch token unless one is given. `port`
    is the port of an earlier wizard.
    """
    with contextlib.ExitStack() as running:

        def serve(
            *, host: str = "127.0.0.1", port: int | None = None, **environment: str
        ) -> Served:
            out = str(tmp_path / "dev-out")
            variables = {"PLATFORM_ROOT": str(device.root), "WIZARD_DEV_OUT": out} | environment
            variables |= {} if "WIZARD_TOKEN" in environment else {"WIZARD_NO_TOKEN": "1"}
            scheme = "https" if "WIZARD_PRODUCTION" in environment else "http"
            log = tmp_path / "wizard-app.log"
            app = served("wizard-app", variables, log, host=host, scheme=scheme, port=port)
            return running.enter_context(app)

        yield serve


@pytest.fixture
def url(serve_wizard: ServeWizard) -> str:
    """The address of a wizard without answers; some files replace this fixture."""
    return serve_wizard().url
