"""Access to the wizard in a browser: links, cookies, sessions, and other sites."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from tests.browser.conftest import OpenPage, ServeWizard
from tests.browser.test_other_sites import LOCAL_NAME, LOOPBACK, at, expect_no_frame, submit
from tests.support.raw_server import RawServer
from tests.support.trees import tree
from tests.support.web_servers import Served

pytestmark = pytest.mark.long

TOKEN, ANOTHER = "0123456789abcdef" * 4, "fedcba9876543210" * 4
LIFETIME_S = 3600
NAMES = pytest.mark.parametrize("name", [LOOPBACK, LOCAL_NAME])


@pytest.fixture
def wizard(serve_wizard: ServeWizard) -> Served:
    """A wizard that opens with TOKEN, at every address of this machine."""
    return serve_wizard(host="0.0.0.0", WIZARD_TOKEN=TOKEN)


def link(wizard: Served, token: str = TOKEN, *, name: str = LOOPBACK, path: str = "/") -> str:
    """A launch link."""
    return f"{at(wizard, name)}{path}?token={token}"


def title(page: Page) -> str:
    """The heading of the open page."""
    return page.get_by_role("heading", level=1).inner_text()


def answer_first_step(page: Page) -> None:
    """Answer the first step, and wait for the second."""
    page.get_by_label("Device name").fill("agent-kitchen")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_role("button", name="Continue", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Choose your assistant")


def session_cookie(context: BrowserContext) -> dict[str, object]:
    """The only cookie of a browser, without its value."""
    (cookie,) = context.cookies()
    assert len(cookie["value"]) == 64
    left = float(str(cookie["expires"])) - time.time()
    assert LIFETIME_S - 60 < left <= LIFETIME_S + 60
    return {
        name: cookie[name] for name in ("name", "domain", "path", "secure", "httpOnly", "sameSite")
    }


@NAMES
@pytest.mark.parametrize("production", [False, True], ids=["development", "production"])
def test_ses_05_a_browser_keeps_the_cookie_of_its_session(
    production: bool, name: str, open_page: OpenPage, serve_wizard: ServeWizard
) -> None:
    variables = {"WIZARD_PRODUCTION": "1"} if production else {}
    wizard = serve_wizard(host="0.0.0.0", WIZARD_TOKEN=TOKEN, **variables)
    scheme = wizard.url.partition(":")[0]
    address = link(wizard, name=name).replace("http", scheme, 1)
    page = open_page(address, ignore_https_errors=True)
    assert (title(page), scheme) == ("Name this device", "https" if production else "http")
    assert session_cookie(page.context) == {
        "name": "__Host-platform-session" if production else "platform-session",
        "domain": name,
        "path": "/",
        "secure": production,
        "httpOnly": True,
        "sameSite": "Strict",
    }
    assert page.evaluate("document.cookie") == ""
    answer_first_step(page)


@pytest.mark.parametrize("path", ["/", "/wizard", "/wizard/system", "/wizard/review"])
def test_the_token_leaves_the_address_bar(path: str, open_page: OpenPage, wizard: Served) -> None:
    page = open_page(link(wizard, path=path))
    expect(page).not_to_have_url(link(wizard, path=path))
    assert TOKEN not in page.url
    page.reload()
    assert title(page) in {"Name this device", "Check your answers"}


def test_tok_01_a_link_works_only_once_and_then_says_so(
    open_page: OpenPage, wizard: Served
) -> None:
    first = open_page(link(wizard))
    second = open_page(link(wizard))
    assert title(second) == "This link has already been used"
    assert "wizard-app new-token" in second.locator("main").inner_text()
    # In the browser with the session, the same link still works.
    first.goto(link(wizard))
    assert title(first) == "Name this device"


def test_ses_08_a_second_browser_is_told_about_the_first_which_continues(
    open_page: OpenPage, wizard: Served
) -> None:
    before = open_page(wizard.url)
    assert title(before) == "You need a link to open setup"
    assert "Another browser" not in before.locator("main").inner_text()
    first = open_page(link(wizard))
    second = open_page(f"{wizard.url}/wizard/review")
    assert title(second) == "You need a link to open setup"
    assert (
        "Another browser is already setting up this device" in second.locator("main").inner_text()
    )
    answer_first_step(first)


def test_a_wrong_link_has_its_own_message_and_spends_nothing(
    open_page: OpenPage, wizard: Served
) -> None:
    page = open_page(link(wizard, ANOTHER))
    assert title(page) == "This link is not valid"
    page.goto(link(wizard))
    assert title(page) == "Name this device"


@NAMES
def test_tok_08_a_link_on_another_site_opens_the_wizard_without_leaking_the_token(
    name: str, scripts: bool, open_page: OpenPage, foreign: RawServer, wizard: Served
) -> None:
    page = open_page(at(foreign, "evil.example"), java_script_enabled=scripts)
    page.set_content(f'<a href="{link(wizard, name=name)}">Set up</a>')
    own = at(wizard, name)
    told: list[str] = []

    def note(request: Request) -> None:
        # Without scripts the browser continues from a page of the wizard, whose address has the
        # token.
        if (scripts or not request.url.startswith(own)) and TOKEN in str(request.headers):
            told.append(request.url)

    page.on("request", note)
    page.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Name this device")
    assert TOKEN not in page.url
    answer_first_step(page)
    assert told == []


def test_tok_06_a_browser_that_prefetches_the_link_does_not_spend_it(
    open_page: OpenPage, stranger: Page, foreign: RawServer, wizard: Served
) -> None:
    stranger.goto(at(foreign, "evil.example"))
    with stranger.expect_event("request", lambda one: TOKEN in one.url) as fetched:
        stranger.evaluate(
            """address => {
              const link = document.createElement("link");
              Object.assign(link, {rel: "prefetch", href: address});
              document.head.append(link);
            }""",
            link(wizard),
        )
    fetched.value.response()
    assert "prefetch" in fetched.value.all_headers()["sec-purpose"]
    assert stranger.request.head(link(wizard)).status == 401
    assert title(open_page(link(wizard))) == "Name this device"


def test_after_an_ended_session_a_new_link_leads_back_to_the_same_step(
    open_page: OpenPage, serve_wizard: ServeWizard, wizard: Served
) -> None:
    page = open_page(link(wizard))
    answer_first_step(page)
    wizard.process.terminate()
    wizard.process.wait()
    again = serve_wizard(host="0.0.0.0", port=wizard.port, WIZARD_TOKEN=ANOTHER)
    page.get_by_label("OpenClaw").check()
    page.get_by_role("button", name="Continue", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Your session has ended. Your answers are saved."
    )
    assert "wizard-app new-token" in page.locator("main").inner_text()
    page.goto(link(again, ANOTHER))
    assert title(page) == "Choose your assistant"
    page.goto(f"{again.url}/wizard/system")
    expect(page.get_by_label("Device name")).to_have_value("agent-kitchen")


def test_the_end_of_a_session_is_announced_ten_minutes_before(
    open_page: OpenPage, wizard: Served
) -> None:
    page = open_page("about:blank")
    page.clock.install()
    page.goto(link(wizard))
    notice = page.get_by_role("status").filter(has_text="Your session ends at")
    page.clock.fast_forward("49:00")
    expect(notice).to_be_hidden()
    page.clock.fast_forward("01:30")
    expect(notice).to_be_visible()
    assert "What you save before then is kept." in notice.inner_text()


def test_the_first_device_can_make_a_link_for_another_device(
    open_page: OpenPage, wizard: Served
) -> None:
    first = open_page(link(wizard, name=LOCAL_NAME))
    first.get_by_role("button", name="Continue on another device").click()
    expect(first.get_by_role("heading", level=1)).to_have_text("Continue on another device")
    expect(first.locator("img.code")).to_be_visible()
    assert first.locator("img.code").evaluate("code => code.naturalWidth") > 0
    second = open_page(first.locator("#link").inner_text(), phone=True)
    for page in (first, second):
        page.goto(f"{at(wizard, LOCAL_NAME)}/wizard/system")
        assert title(page) == "Name this device"


def test_http_17_the_browser_caches_no_page(open_page: OpenPage, wizard: Served) -> None:
    page = open_page("about:blank")
    kept = []
    for address in (link(wizard), f"{wizard.url}/wizard/review", f"{wizard.url}/nothing"):
        answer = page.goto(address)
        assert answer is not None
        ways = [answer.request]
        while (before := ways[-1].redirected_from) is not None:
            ways.append(before)
        for asked in ways:
            found = asked.response()
            assert found is not None
            if "no-store" not in (found.header_value("cache-control") or ""):
                kept.append(asked.url)
    assert kept == []


FORMS = {
    "/wizard/system": {"hostname": "evil", "timezone": "UTC"},
    "/wizard/mesh-vpn": {"authkey": "tskey-of-somebody-else"},
    "/wizard/import": {"file": "{}"},
    "/wizard/another-device": {"x": "y"},
    "/preferences": {"theme": "dark"},
}


@NAMES
def test_http_09_a_form_of_another_site_is_refused(
    name: str, stranger: Page, foreign: RawServer, serve_wizard: ServeWizard, tmp_path: Path
) -> None:
    wizard = serve_wizard(host="0.0.0.0")
    before = tree(tmp_path / "dev-out")
    for neighbour in ("evil.example", name, f"sibling.{LOCAL_NAME}"):
        for path, fields in FORMS.items():
            stranger.goto(at(foreign, neighbour))
            assert submit(stranger, at(wizard, name) + path, fields).status == 403, path
    assert tree(tmp_path / "dev-out") == before
    assert stranger.context.cookies() == []


@NAMES
def test_http_13_no_page_is_shown_in_a_frame(
    name: str, stranger: Page, foreign: RawServer, wizard: Served
) -> None:
    stranger.goto(at(foreign, "evil.example"))
    expect_no_frame(stranger, link(wizard, name=name))
