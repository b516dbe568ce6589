"""The pages for those who have a keyboard alone, or a browser that runs no scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage, ServeDashboard
from tests.support import dashboard_states, key_states, system_states
from tests.support.control_cli import FakeCtl
from tests.support.layout import focus_walk
from tests.support.scenes import EVERYWHERE, serving
from tests.support.wizard_states import SCENES as WIZARD_SCENES
from tests.support.wizard_states import STEPS

SCREENS = [pytest.param(True, id="phone"), pytest.param(False, id="desk")]
IN_MAIN = "document.querySelector('main').contains(document.activeElement)"


@pytest.fixture
def url(serve_dashboard: ServeDashboard, ctl: FakeCtl) -> str:
    """A dashboard with a lot on its pages."""
    system_states.STATES["fine"](ctl)
    key_states.STATES["several"](ctl)
    dashboard_states.UPDATE_STATES["available"](ctl)
    dashboard_states.STATES["problems"](ctl)
    return serve_dashboard(**ctl.environment).url


def pages(url: str, page: Page) -> Iterator[str]:
    """Open one page after the other; the address of each while it is open."""
    for address in EVERYWHERE:
        page.goto(url + address)
        yield address


@pytest.mark.parametrize("phone", SCREENS)
def test_the_tab_key_leads_everywhere_and_where_it_is_can_be_seen(
    phone: bool, open_page: OpenPage, url: str
) -> None:
    page = open_page("about:blank", phone=phone, reduced_motion="reduce")
    for address in pages(url, page):
        stops = focus_walk(page)
        assert [stop for stop in stops if stop.covered or not stop.visible] == [], address
        assert len({stop.name for stop in stops}) > 1, address


@pytest.mark.parametrize("phone", SCREENS)
def test_going_back_with_the_keyboard_is_seen_too(
    phone: bool, open_page: OpenPage, url: str
) -> None:
    page = open_page("about:blank", phone=phone, reduced_motion="reduce")
    for address in pages(url, page):
        stops = focus_walk(page, backwards=True)
        assert [stop for stop in stops if stop.covered or not stop.visible] == [], address


@pytest.mark.parametrize("phone", SCREENS)
def test_the_first_stop_skips_to_the_content(phone: bool, open_page: OpenPage, url: str) -> None:
    page = open_page("about:blank", phone=phone)
    for address in pages(url, page):
        page.keyboard.press("Tab")
        skip = page.locator(":focus")
        assert skip.inner_text() == "Skip to the content", address
        skip.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main", address
        page.keyboard.press("Tab")
        inside = page.locator("main").locator("a[href], button, input, summary, select").count()
        assert page.evaluate(IN_MAIN) or inside == 0, address


@pytest.mark.parametrize(
    ("phone", "backwards"),
    [
        pytest.param(True, False, id="phone"),
        pytest.param(True, True, id="phone-back"),
        pytest.param(False, False, id="desk"),
    ],
)
def test_n22_the_tab_key_leads_everywhere_in_the_wizard(
    phone: bool, backwards: bool, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page("about:blank", phone=phone, reduced_motion="reduce")
    with serving(WIZARD_SCENES["answered"].app(tmp_path)) as url:
        for slug in (*STEPS, "review"):
            page.goto(f"{url}/wizard/{slug}")
            stops = focus_walk(page, backwards=backwards)
            assert [stop for stop in stops if stop.covered or not stop.visible] == [], slug
        page.goto("about:blank")


def test_every_page_of_the_wizard_is_whole_without_scripts(
    open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page("about:blank", java_script_enabled=False)
    with serving(WIZARD_SCENES["answered"].app(tmp_path)) as url:
        for slug in (*STEPS, "review"):
            page.goto(f"{url}/wizard/{slug}")
            idle = page.locator("button[type=button]:visible, main button:visible:not(form button)")
            assert idle.count() == 0, slug
        page.goto("about:blank")


def test_the_order_of_the_keyboard_is_that_of_the_page(open_page: OpenPage, url: str) -> None:
    page = open_page("about:blank")
    for address in pages(url, page):
        assert page.locator("[tabindex]:not([tabindex='0']):not([tabindex='-1'])").count() == 0
        assert page.locator("[accesskey], [autofocus]").count() == 0, address


def test_every_page_is_whole_without_scripts(open_page: OpenPage, url: str) -> None:
    page = open_page("about:blank", java_script_enabled=False)
    for address in pages(url, page):
        assert page.get_by_role("heading", level=1).is_visible(), address
        # One without a form does something by a script alone.
        idle = page.locator("button[type=button]:visible, main button:visible:not(form button)")
        assert idle.count() == 0, address


def test_every_page_is_reached_by_links(open_page: OpenPage, url: str) -> None:
    page = open_page("about:blank", java_script_enabled=False)
    seen, ahead = set(), ["/app/dashboard"]
    while ahead:
        address = ahead.pop()
        seen.add(address)
        page.goto(url + address)
        for link in page.locator("a[href^='/app/']:not([download])").all():
            target = (link.get_attribute("href") or "").partition("#")[0].partition("?")[0]
            if target not in {*seen, *ahead} and "." not in target and "download" not in target:
                ahead.append(target)
    assert set(EVERYWHERE) - {"/offline"} <= seen


def test_a_focus_that_cannot_be_seen_is_found_out(open_page: OpenPage) -> None:
    page = open_page("about:blank", phone=True)
    page.set_content(
        "<style>#plain { outline: 0 } body { height: 200vh }"
        " div { position: fixed; inset: auto 0 0; height: 60px; background: white }</style>"
        "<button>seen</button><button id=plain>plain</button>"
        "<button style='position: absolute; top: 620px'>covered</button><div></div>"
    )
    stops = {stop.name: (stop.visible, stop.covered) for stop in focus_walk(page)}
    assert stops == {"seen": (True, False), "plain": (False, False), "covered": (True, True)}


def test_a_trap_for_the_focus_is_found_out(open_page: OpenPage) -> None:
    page = open_page("about:blank")
    page.set_content("<button>one</button><button id=two>two</button><button>three</button>")
    page.evaluate("() => { two.onkeydown = event => event.preventDefault(); }")
    with pytest.raises(AssertionError, match="three"):
        focus_walk(page)
