"""The pages with only a keyboard, and in a browser without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage, ServeDashboard
from tests.support import dashboard_states, key_states, system_states
from tests.support.control_cli import FakeCtl
from tests.support.layout import Stop, focus_walk
from tests.support.scenes import EVERYWHERE, SCENES

IN_MAIN = "document.querySelector('main').contains(document.activeElement)"
# On a phone more elements can cover the focus.
SCREENS = pytest.mark.parametrize("phone", [True, False], ids=["phone", "desk"])


@pytest.fixture
def url(serve_dashboard: ServeDashboard, ctl: FakeCtl) -> str:
    """A dashboard with much content on its pages."""
    system_states.STATES["fine"](ctl)
    key_states.STATES["several"](ctl)
    dashboard_states.UPDATE_STATES["available"](ctl)
    dashboard_states.STATES["problems"](ctl)
    return serve_dashboard(**ctl.environment).url


def pages(url: str, page: Page) -> Iterator[str]:
    """Open one page after the other, and yield its address."""
    for address in (*EVERYWHERE, "/app/keys/bedrock"):
        page.goto(url + address)
        yield address


def lost_stops(page: Page) -> list[Stop]:
    """The stops of the open page where the focus cannot be seen, forwards and backwards."""
    stops = focus_walk(page)
    assert len({stop.name for stop in stops}) > 1, page.url
    stops += focus_walk(page, backwards=True)
    return [stop for stop in stops if stop.covered or not stop.visible]


@pytest.mark.long
@SCREENS
def test_the_tab_key_reaches_everything_and_the_focus_is_always_visible(
    phone: bool, open_page: OpenPage, url: str
) -> None:
    page = open_page("about:blank", phone=phone)
    for address in pages(url, page):
        assert lost_stops(page) == [], address


@pytest.mark.long
@SCREENS
def test_n22_the_tab_key_reaches_everything_in_the_wizard(
    phone: bool, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page("about:blank", phone=phone)
    with SCENES["wizard-answered"].staged(tmp_path) as stage:
        for view in SCENES["wizard-answered"].views:
            view.open(page, stage.url)
            assert lost_stops(page) == [], view.name
        page.goto("about:blank")


@SCREENS
def test_the_first_stop_skips_to_the_content_and_the_order_is_that_of_the_page(
    phone: bool, open_page: OpenPage, url: str
) -> None:
    page = open_page("about:blank", phone=phone)
    for address in pages(url, page):
        assert page.locator("[tabindex]:not([tabindex='0']):not([tabindex='-1'])").count() == 0
        assert page.locator("[accesskey], [autofocus]").count() == 0, address
        page.keyboard.press("Tab")
        skip = page.locator(":focus")
        assert skip.inner_text() == "Skip to the content", address
        skip.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main", address
        page.keyboard.press("Tab")
        inside = page.locator("main").locator("a[href], button, input, summary, select").count()
        assert page.evaluate(IN_MAIN) or inside == 0, address


def buttons_without_effect(page: Page) -> int:
    """How many visible buttons have no effect without scripts: those outside a form."""
    return page.locator("button[type=button]:visible, main button:visible:not(form button)").count()


def test_every_page_is_complete_without_scripts_and_reachable_by_links(
    open_page: OpenPage, url: str
) -> None:
    page = open_page("about:blank", java_script_enabled=False)
    seen, ahead = set(), ["/app/dashboard", "/offline"]
    while ahead:
        address = ahead.pop()
        seen.add(address)
        page.goto(url + address)
        assert page.get_by_role("heading", level=1).is_visible(), address
        assert buttons_without_effect(page) == 0, address
        for link in page.locator("a[href^='/app/']:not([download])").all():
            target = (link.get_attribute("href") or "").partition("#")[0].partition("?")[0]
            if target not in {*seen, *ahead} and "." not in target and "download" not in target:
                ahead.append(target)
    assert set(EVERYWHERE) <= seen


def test_every_page_of_the_wizard_is_complete_without_scripts(
    open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page("about:blank", java_script_enabled=False)
    with SCENES["wizard-answered"].staged(tmp_path) as stage:
        for view in SCENES["wizard-answered"].views:
            page.goto(stage.url + view.address)
            assert buttons_without_effect(page) == 0, view.name


def test_an_invisible_focus_is_detected(open_page: OpenPage) -> None:
    page = open_page("about:blank", phone=True)
    page.set_content(
        "<style>#plain { outline: 0 } body { height: 200vh }"
        " div { position: fixed; inset: auto 0 0; height: 60px; background: white }</style>"
        "<button>seen</button><button id=plain>plain</button>"
        "<button style='position: absolute; top: 620px'>covered</button><div></div>"
    )
    stops = {stop.name: (stop.visible, stop.covered) for stop in focus_walk(page)}
    assert stops == {"seen": (True, False), "plain": (False, False), "covered": (True, True)}


def test_a_focus_trap_is_detected(open_page: OpenPage) -> None:
    page = open_page("about:blank")
    page.set_content("<button>one</button><button id=two>two</button><button>three</button>")
    page.evaluate("() => { two.onkeydown = event => event.preventDefault(); }")
    with pytest.raises(AssertionError, match="three"):
        focus_walk(page)
