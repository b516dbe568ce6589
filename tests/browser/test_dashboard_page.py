"""The dashboard in a browser."""

from __future__ import annotations

from tests.browser.conftest import OpenPage, ServeDashboard
from tests.support.control_cli import FakeCtl


def test_the_start_page_is_the_dashboard(
    open_page: OpenPage, serve_dashboard: ServeDashboard, ctl: FakeCtl
) -> None:
    page = open_page(serve_dashboard(**ctl.environment).url)
    assert page.url.endswith("/app/dashboard")
