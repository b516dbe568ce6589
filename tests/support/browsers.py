"""How Debian's Chromium is started for tests."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.support.faults import wait_until

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    # Names of other sites, and of devices beside loopback, that all lead to this machine.
    "--host-resolver-rules=MAP *.example 127.0.0.1, MAP *.local 127.0.0.1",
]


def until(page: Page, expression: str) -> None:
    """Return once the expression is true in the page.

    Playwright's own `wait_for_function` evaluates text inside the page, which our
    pages forbid, so it fails unless the expression is true at once.
    """
    wait_until(lambda: page.evaluate(expression))
