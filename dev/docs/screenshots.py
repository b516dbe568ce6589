"""Makes the pictures in docs/screenshots: pages of sample devices in Chromium."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from dev.distributions import ROOT
from dev.samples import device as sample_device
from tests.support import dashboard_states, key_states, system_states, wizard_states
from tests.support.browsers import CHROMIUM, FLAGS, send
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device
from tests.support.gateways import stand_in
from tests.support.journals import NEXT_BOOT, Logged, RealJournal
from tests.support.releases import program
from tests.support.web_servers import served

FOLDER = ROOT / "docs/screenshots"
_MOST_BYTES = 60_000
_QUALITIES = (90, 80, 70, 60, 50, 40)
_NAME = "agent-kitchen"
_UNIT = "openclaw-gateway.service"
_LOG = (
    Logged("session resumed for telegram:+49…21", 6, _UNIT),
    Logged("tool calendar.list finished in 412 ms", 6, _UNIT),
    Logged("reply sent, 318 tokens, $0.0041", 6, _UNIT),
    Logged("telegram: slow reply (2.1 s)", 4, _UNIT),
    Logged("provider returned 401, the key may have been revoked", 3, _UNIT),
    Logged("trying again in 5 s", 6, _UNIT),
    Logged("stopped by the system", 5, _UNIT),
    Logged("gateway 2026.4.25 starting", 6, _UNIT, NEXT_BOOT),
    Logged("3 channels: telegram, slack, web", 6, _UNIT, NEXT_BOOT),
    Logged("gateway listening on 127.0.0.1:18789", 5, _UNIT, NEXT_BOOT),
    Logged("session resumed for web:kitchen-tablet", 6, _UNIT, NEXT_BOOT),
    Logged("reply sent, 96 tokens, $0.0012", 6, _UNIT, NEXT_BOOT),
)


class Picture(NamedTuple):
    """A page of a device in a given state, and how to show it."""

    name: str
    address: str
    state: Callable[[FakeCtl], None] = dashboard_states.STATES["fine"]
    phone: bool = False
    dark: bool = False


class Step(NamedTuple):
    """A page of the wizard, with all earlier pages answered; `chosen` is ticked on it."""

    name: str
    step: str
    chosen: str = ""
    phone: bool = False
    dark: bool = False


PICTURES = (
    Picture("dashboard", "/app/dashboard"),
    Picture("dashboard-phone", "/app/dashboard", phone=True, dark=True),
    Picture("problems", "/app/dashboard", dashboard_states.STATES["problems"], phone=True),
    Picture("logs", "/app/logs", dark=True),
    Picture("keys", "/app/keys"),
    Picture("key", "/app/keys/anthropic", phone=True),
    Picture("notifications", "/app/notifications", phone=True),
    Picture("system", "/app/system"),
)

# Pictures of one device that is set up, then used in the chat and the dashboard.
DONE = Picture("wizard-done", "/wizard/done", phone=True)
CHAT = Picture("chat", "/chat")
SET_UP = Picture("set-up", "/app/dashboard")
_QUESTION = "Remind me of the milk when I am at the shop, please."

STEPS = (
    Step("wizard-name", "system", phone=True),
    Step("wizard-provider", "provider", chosen="[value=anthropic]", phone=True, dark=True),
    Step("wizard-backup", "backup", chosen="[value=store_b]", phone=True),
    Step("wizard-review", "review"),
)


def make(browser: Browser, picture: Picture, folder: Path) -> Path:
    """Make one picture, with a device in `folder`; its file."""
    device, journal = Device(folder / "device"), RealJournal(folder / "journal")
    device.put("/etc/hostname", f"{_NAME}\n")
    journal.write(*_LOG)
    ctl = FakeCtl(folder / "ctl")
    for answers in (system_states.STATES["fine"], key_states.STATES["several"], picture.state):
        answers(ctl)
    variables = {"PLATFORM_ROOT": str(device.root), **ctl.environment, **journal.environment}
    with served("pwa-app", variables, folder / "log") as running, _page(browser, picture) as page:
        page.goto(running.url + picture.address, wait_until="networkidle")
        data = _taken(page)
    return _written(picture.name, data)


def make_step(browser: Browser, step: Step, folder: Path) -> Path:
    """Make the picture of a wizard's page, with a device in `folder`; its file."""
    device = Device(folder / "device")
    device.put("/etc/hostname", f"{_NAME}\n")
    variables = {
        "PLATFORM_ROOT": str(device.root),
        "WIZARD_DEV_OUT": str(folder / "out"),
        "WIZARD_NO_TOKEN": "1",
    }
    with served("wizard-app", variables, folder / "log") as running, _page(browser, step) as page:
        for slug, fields in wizard_states.ANSWERS.items():
            if slug == step.step:
                break
            page.goto(running.url)
            send(page, f"{running.url}/wizard/{slug}", fields)
        page.goto(f"{running.url}/wizard/{step.step}", wait_until="networkidle")
        if step.chosen:
            page.check(step.chosen)
        data = _taken(page)
    return _written(step.name, data)


def make_way(browser: Browser, folder: Path) -> list[Path]:
    """Make the pictures of a device in `folder` that is set up, and then talked to; their files."""
    root = folder / "out"
    sample_device.make(root, "2026.11.1", "https://releases.example/stable/", datetime.now(UTC))
    variables = {"WIZARD_DEV_OUT": str(root), "WIZARD_NO_TOKEN": "1"}
    control = {"PLATFORM_ROOT": str(root), "PLATFORM_CTL": program("platformctl")}
    with (
        stand_in() as gateway,
        served("wizard-app", control | variables, folder / "wizard.log") as wizard,
        served("pwa-app", control, folder / "dashboard.log") as dashboard,
        _page(browser, DONE) as small,
        _page(browser, CHAT) as large,
    ):
        sample_device.place_gateway(root, gateway)
        for slug, fields in wizard_states.ANSWERS.items():
            small.goto(wizard.url)
            send(small, f"{wizard.url}/wizard/{slug}", fields)
        small.goto(wizard.url)
        small.get_by_role("button", name="Set up this device").click()
        small.wait_for_url(f"**{DONE.address}", wait_until="networkidle")
        taken = [_written(DONE.name, _taken(small))]
        large.goto(wizard.url + CHAT.address, wait_until="networkidle")
        large.locator("textarea").fill(_QUESTION)
        large.get_by_role("button", name="Send").click()
        large.locator("#latest .said strong").wait_for()
        taken.append(_written(CHAT.name, _taken(large)))
        large.goto(dashboard.url + SET_UP.address, wait_until="networkidle")
        taken.append(_written(SET_UP.name, _taken(large)))
    return taken


def _written(name: str, data: bytes) -> Path:
    file = FOLDER / f"{name}.webp"
    file.write_bytes(data)
    return file


def _page(browser: Browser, picture: Picture | Step) -> Page:
    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
    if picture.phone:
        options = {
            "viewport": {"width": 390, "height": 844},
            "device_scale_factor": 2,
            "has_touch": True,
            "is_mobile": True,
        }
    return browser.new_page(
        **options,
        color_scheme="dark" if picture.dark else "light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )


def _taken(page: Page) -> bytes:
    """The page as WebP, in the best quality that is small enough."""
    session = page.context.new_cdp_session(page)
    for quality in _QUALITIES:
        options = {"format": "webp", "quality": quality}
        data = base64.b64decode(session.send("Page.captureScreenshot", options)["data"])
        if len(data) < _MOST_BYTES:
            return data
    raise SystemExit(f"the picture of {page.url} has {len(data):,} bytes")


def main() -> None:
    """Make all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as scratch:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for picture in PICTURES:
            _tell(make(browser, picture, Path(scratch) / picture.name))
        for step in STEPS:
            _tell(make_step(browser, step, Path(scratch) / step.name))
        for file in make_way(browser, Path(scratch) / "way"):
            _tell(file)
        browser.close()


def _tell(file: Path) -> None:
    print(f"{file.relative_to(ROOT)}  {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
