"""The start page in a browser: what its scripts do, and that it works without them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, ServeDashboard
from tests.support.control_cli import FakeCtl
from tests.support.dashboard_states import STATES, UPDATE_STATES

LONG_MS = 20_000


@pytest.fixture
def url(serve_dashboard: ServeDashboard, ctl: FakeCtl) -> str:
    """A dashboard whose control CLI gives the answers of the test."""
    return serve_dashboard(**ctl.environment).url


def test_the_start_page_is_the_dashboard(open_page: OpenPage, url: str) -> None:
    page = open_page(url)
    assert page.url.endswith("/app/dashboard")


def test_the_script_announces_an_update_and_asks_only_once(
    open_page: OpenPage, url: str, ctl: FakeCtl
) -> None:
    STATES["fine"](ctl)
    UPDATE_STATES["available"](ctl)
    page = open_page(url)
    notice = page.get_by_role("status").filter(has_text="Release 2026.11.9 is available.")
    expect(notice).to_be_visible(timeout=LONG_MS)
    page.reload()
    expect(notice).to_be_visible(timeout=LONG_MS)
    assert ctl.words().count("update --check --json") == 1
    page.get_by_role("link", name="See what it does").click()
    expect(page.get_by_role("heading", name="An update is available")).to_be_visible(
        timeout=LONG_MS
    )


def test_the_script_says_how_old_the_page_is(open_page: OpenPage, url: str, ctl: FakeCtl) -> None:
    STATES["fine"](ctl)
    page = open_page("about:blank")
    page.clock.install()
    page.goto(url)
    page.clock.run_for(5 * 60_000)
    assert page.locator("#checked").inner_text().endswith(", 5 minutes ago")


def test_without_a_script_the_page_is_complete(open_page: OpenPage, url: str, ctl: FakeCtl) -> None:
    STATES["problems"](ctl)
    UPDATE_STATES["available"](ctl)
    page = open_page(url, java_script_enabled=False)
    page.get_by_text("Daily costs as a table").click()
    expect(page.get_by_role("cell", name="Nov 21, 2026")).to_be_visible()
    expect(page.get_by_role("img", name="Cost per day from Oct 23, 2026")).to_be_visible()
    page.get_by_role("link", name="See what to do").first.click()
    assert page.url.endswith("#health")
    page.get_by_role("link", name="Check for updates").click()
    expect(page.get_by_text("platformctl update --apply")).to_be_visible()
    assert ctl.words().count("update --check --json") == 1
