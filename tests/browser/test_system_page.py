"""The system, voice and diagnostics pages in a browser."""

from __future__ import annotations

import io
import zipfile

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage, ServeDashboard
from tests.support import system_states
from tests.support.control_cli import FakeCtl
from tests.support.system_states import voice

pytestmark = pytest.mark.long

LIGHT, DARK = "rgb(246, 247, 249)", "rgb(14, 17, 22)"
_GROUND = "() => getComputedStyle(document.body).backgroundColor"


@pytest.fixture
def url(serve_dashboard: ServeDashboard, ctl: FakeCtl) -> str:
    """A dashboard of a healthy device."""
    system_states.fine(ctl)
    return serve_dashboard(**ctl.environment).url


def colour_of_background(page: Page) -> str:
    """The colour of the page's background."""
    found: str = page.evaluate(_GROUND)
    return found


@pytest.mark.parametrize(
    ("system", "theme", "colour"), [(False, "Dark", DARK), (True, "Light", LIGHT)]
)
def test_a_theme_that_differs_from_the_systems_applies_to_every_page(
    open_page: OpenPage, url: str, system: bool, theme: str, colour: str
) -> None:
    page = open_page(f"{url}/app/system", dark=system)
    before = colour_of_background(page)
    assert before != colour
    page.get_by_role("radio", name=theme, exact=True).check()
    # The browser returns to the same address.
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    assert page.get_by_role("radio", name=theme, exact=True).is_checked()
    for path in ("/app/system", "/app/voice", "/app/nothing-there"):
        page.goto(f"{url}{path}")
        assert colour_of_background(page) == colour
    page.goto(f"{url}/app/system")
    page.get_by_role("group", name="Colours").get_by_role("radio", name="Auto").check()
    # The browser returns to the same address.
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    assert colour_of_background(page) == before


@pytest.mark.parametrize("theme", ["dark light", '"><script>', "DARK", ""])
def test_an_unknown_value_of_the_cookie_is_ignored(
    open_page: OpenPage, url: str, theme: str
) -> None:
    page = open_page(f"{url}/app/system")
    page.context.set_extra_http_headers({"Cookie": f"platform-theme={theme}"})
    page.reload()
    assert colour_of_background(page) == LIGHT


def test_a_language_is_chosen_with_the_keyboard_and_without_scripts(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(f"{url}/app/system", java_script_enabled=False, locale="en-GB")
    assert page.locator("html").get_attribute("lang") == "en"
    page.get_by_role("group", name="Language").get_by_role("radio", name="Auto").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.locator("html").get_attribute("lang") == "de"
    assert page.locator('[name="language"][value="de"]').is_checked()


def test_voice_is_switched_on_and_off_without_scripts(
    open_page: OpenPage, url: str, ctl: FakeCtl
) -> None:
    page = open_page(f"{url}/app/voice", java_script_enabled=False, phone=True)
    page.get_by_role("button", name="Check the microphone").click()
    assert "The microphone works." in page.get_by_role("status").inner_text()
    page.get_by_role("button", name="Switch voice on").click()
    assert "Voice stays off" in page.get_by_role("alert").inner_text()
    page.get_by_label("Everyone who can be heard here agrees to this").check()
    ctl.answer("voice status --json", voice(enabled=True, active=True))
    page.get_by_role("button", name="Switch voice on").click()
    assert "Voice is on." in page.get_by_role("status").inner_text()
    assert "Listening" in page.get_by_role("main").inner_text()
    ctl.answer("voice status --json", voice())
    page.get_by_role("button", name="Switch voice off").click()
    assert "Voice is off." in page.get_by_role("status").inner_text()
    words = [words for words in ctl.words() if not words.startswith("voice status")]
    assert words == ["voice check --json"] * 2 + ["voice enable --yes", "voice disable"]


def test_diagnostics_can_be_downloaded_from_the_system_page(
    open_page: OpenPage, url: str, scripts: bool
) -> None:
    page = open_page(f"{url}/app/system", java_script_enabled=scripts, phone=True)
    page.get_by_role("link", name="Diagnostics").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download diagnostics").click()
    assert download.value.suggested_filename.startswith("diagnostics-")
    with zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes())) as packed:
        assert packed.testzip() is None


def test_the_whole_row_of_the_system_page_is_a_link(open_page: OpenPage, url: str) -> None:
    page = open_page(f"{url}/app/system", phone=True)
    row = page.get_by_text("Whether the device listens for its wake word.")
    row.scroll_into_view_if_needed()
    box = row.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url("**/app/voice")


def test_every_page_links_to_help(open_page: OpenPage, url: str) -> None:
    page = open_page(f"{url}/app/voice", phone=True)
    page.get_by_role("contentinfo").get_by_role("link", name="Help").click()
    assert page.get_by_role("heading", name="Help").is_visible()
