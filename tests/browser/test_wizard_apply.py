"""Applying setup in a browser: its progress, a failure, and the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import OpenPage
from tests.browser.test_wizard_path import tab_to
from tests.support.accessibility import violations
from tests.support.devices import Device
from tests.support.layout import sideways_scroll
from tests.support.scenes import serving
from tests.support.wizard_apply import Commands, wizard_with
from tests.support.wizard_states import ANSWERS, SECRETS, TOKEN, answer

pytestmark = pytest.mark.long

SET_UP, AGAIN = "Set up this device", "Try again"
SLOW_S = 30
Serve = Callable[[Commands], str]


@pytest.fixture
def environment(device: Device, tmp_path: Path) -> dict[str, str]:
    """The environment of a wizard that sets up a folder, and reads a device."""
    return {"PLATFORM_ROOT": str(device.root), "WIZARD_DEV_OUT": str(tmp_path / "dev-out")}


@pytest.fixture
def serve(environment: dict[str, str]) -> Iterator[Serve]:
    """Serve a wizard with all answers and these commands."""
    with ExitStack() as running:

        def served(commands: Commands) -> str:
            app = wizard_with(commands, environment | {"WIZARD_NO_TOKEN": "1"})
            answer(app, ANSWERS)
            url = running.enter_context(serving(app))
            running.callback(commands.go_on.set)
            return url

        yield served


# Pages poll the progress, so they are closed before their app.
@pytest.fixture
def open_page(serve: Serve, open_page: OpenPage) -> OpenPage:
    return open_page


@pytest.fixture
def stranger(serve: Serve, stranger: Page) -> Page:
    return stranger


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def expect_title(page: Page, words: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(words)


def state_of(page: Page, phase: str) -> str:
    """The state of a phase, as the page shows it."""
    row = page.locator("ol.phases li").filter(has_text=phase).locator(".pill")
    return row.inner_text().split(maxsplit=1)[1]


def test_one_press_completes_setup(scripts: bool, open_page: OpenPage, serve: Serve) -> None:
    commands = Commands()
    url = serve(commands)
    page = open_page(
        f"{url}/wizard/review",
        phone=scripts,
        java_script_enabled=scripts,
    )
    press(page, SET_UP)
    page.wait_for_url(f"{url}/wizard/done")
    expect_title(page, "agent-kitchen is ready")
    expect(page.get_by_role("link", name="Start chatting")).to_be_visible()
    expect(page.get_by_alt_text("as a code to scan")).to_be_visible()
    assert len(commands.run) == 7


def test_the_page_shows_the_progress_and_updates_itself(open_page: OpenPage, serve: Serve) -> None:
    commands = Commands(slow="platform-tunnel")
    url = serve(commands)
    page = open_page(f"{url}/wizard/review", phone=True, dark=True)
    press(page, SET_UP)
    expect_title(page, "Setting up agent-kitchen")
    expect(page.get_by_role("status").first).to_have_text("Now: Tunnel")
    assert page.title() == "Setting up agent-kitchen"
    assert state_of(page, "Provider key") == "Done"
    assert state_of(page, "Tunnel") == "Running"
    assert state_of(page, "Gateway") == "Waiting"
    expect(page.get_by_role("link", name="Back", exact=True)).to_be_hidden()
    page.get_by_text("Show details").click()
    expect(page.get_by_text("systemctl enable --now platform-tunnel.service")).to_be_visible()
    assert violations(page) == []
    assert sideways_scroll(page) == []
    assert [secret for secret in SECRETS if secret in page.content()] == []
    commands.go_on.set()
    page.wait_for_url(f"{url}/wizard/done")


def test_opened_details_stay_open_and_keep_the_focus(open_page: OpenPage, serve: Serve) -> None:
    commands = Commands(slow="platform-tunnel")
    url = serve(commands)
    page = open_page(f"{url}/wizard/review")
    with page.expect_response("**/wizard/apply/status"):
        press(page, SET_UP)
    expect(page.get_by_role("status").first).to_have_text("Now: Tunnel")
    tab_to(page, "main summary")
    page.keyboard.press("Enter")
    for _ in range(2):
        with page.expect_response("**/wizard/apply/status"):
            pass
    expect(page.get_by_text("systemctl enable --now platform-tunnel.service")).to_be_visible()
    assert page.evaluate("document.activeElement.matches('main summary')")
    commands.go_on.set()
    page.wait_for_url(f"{url}/wizard/done")


def test_a_reload_and_another_tab_show_the_same_progress(open_page: OpenPage, serve: Serve) -> None:
    commands = Commands(slow="nft")
    url = serve(commands)
    one = open_page(f"{url}/wizard/review")
    other = one.context.new_page()
    other.goto(f"{url}/wizard/review")
    press(one, SET_UP)
    assert commands.is_waiting.wait(SLOW_S)
    press(other, SET_UP)
    expect(other.get_by_text("so it was not started again.")).to_be_visible()
    one.reload()
    for page in (one, other):
        expect_title(page, "Setting up agent-kitchen")
        expect(page.get_by_role("status").first).to_have_text("Now: Firewall")
    commands.go_on.set()
    for page in (one, other):
        page.wait_for_url(f"{url}/wizard/done")
    assert len(commands.run) == 7


def test_without_scripts_pressing_again_leads_to_the_last_page(
    open_page: OpenPage, serve: Serve
) -> None:
    commands = Commands(slow="nft")
    url = serve(commands)
    one = open_page(f"{url}/wizard/review", java_script_enabled=False)
    other = one.context.new_page()
    other.goto(f"{url}/wizard/review")
    one.get_by_role("button", name=SET_UP).click(no_wait_after=True)
    assert commands.is_waiting.wait(SLOW_S)
    press(other, SET_UP)
    expect_title(other, "Setting up agent-kitchen")
    commands.go_on.set()
    other.wait_for_url(f"{url}/wizard/done")
    one.wait_for_url(f"{url}/wizard/done")


def test_wiz_05_a_failure_is_reported_and_can_be_retried(
    scripts: bool, open_page: OpenPage, serve: Serve
) -> None:
    commands = Commands(failing="nft")
    url = serve(commands)
    page = open_page(f"{url}/wizard/review", java_script_enabled=scripts)
    press(page, SET_UP)
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("Setup stopped")
    expect(problem).to_contain_text("nft -f /etc/nftables.d/platform.nft")
    expect(problem).to_contain_text("Could not set property: <b>Access denied</b>")
    if scripts:
        expect(problem).to_be_focused()
        expect(page.get_by_role("link", name="Back", exact=True)).to_be_visible()
    assert state_of(page, "Tunnel") == "Done"
    assert state_of(page, "Firewall") == "Did not work"
    assert state_of(page, "Gateway") == "Not done"
    commands.failing = ""
    press(page, AGAIN)
    page.wait_for_url(f"{url}/wizard/done")


# The browser reports failed requests on its console, and here some must fail.
def test_a_lost_response_does_no_harm(stranger: Page, serve: Serve) -> None:
    commands, page = Commands(slow="nft"), stranger
    url = serve(commands)
    # The request reaches the device, but the response is lost.
    page.route("**/wizard/review/apply", lambda route: _cut(route, commands))
    page.goto(f"{url}/wizard/review")
    press(page, SET_UP)
    page.wait_for_url(f"{url}/wizard/done", timeout=SLOW_S * 1000)
    expect_title(page, "agent-kitchen is ready")


def _cut(route: Route, commands: Commands) -> None:
    commands.go_on.set()
    route.fetch()
    route.abort("connectionreset")


def test_while_the_device_cannot_be_reached_the_page_says_so_and_keeps_polling(
    stranger: Page, serve: Serve
) -> None:
    commands, page = Commands(slow="nft"), stranger
    url = serve(commands)
    page.goto(f"{url}/wizard/review")
    press(page, SET_UP)
    expect(page.get_by_role("status").first).to_have_text("Now: Firewall")
    lost = page.get_by_text("The device is not answering at the moment")
    expect(lost).to_be_hidden()
    broken = "**/wizard/apply/status"
    page.route(broken, lambda route: route.fulfill(status=503, body="busy"))
    expect(lost).to_be_visible()
    page.unroute(broken)
    expect(lost).to_be_hidden()
    commands.go_on.set()
    page.wait_for_url(f"{url}/wizard/done")


def test_a_plan_that_was_not_shown_is_not_executed(stranger: Page, serve: Serve) -> None:
    commands, page = Commands(), stranger
    url = serve(commands)
    page.goto(f"{url}/wizard/review")
    other = page.context.new_page()
    other.goto(f"{url}/wizard/system?return=review")
    other.get_by_label("Device name").fill("agent-garden")
    with other.expect_navigation():
        other.get_by_role("button", name="Continue", exact=True).click()
    press(page, SET_UP)
    expect(page.get_by_role("status").first).to_contain_text(
        "these changes are not the ones that you looked at"
    )
    expect(page.get_by_text("agent-garden").first).to_be_visible()
    assert commands.run == []
    press(page, SET_UP)
    page.wait_for_url(f"{url}/wizard/done")
    assert len(commands.run) == 7


def test_n22_setup_can_be_applied_with_the_keyboard(open_page: OpenPage, serve: Serve) -> None:
    url = serve(Commands())
    page = open_page(f"{url}/wizard/review")
    tab_to(page, "main details summary")
    page.keyboard.press("Enter")
    expect(page.get_by_text("/etc/hostname").first).to_be_visible()
    tab_to(page, "main form button")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{url}/wizard/done")
    tab_to(page, 'main a[href="/chat"]')


def test_http_17_the_back_button_shows_no_answers_after_the_end(
    open_page: OpenPage, serve: Serve
) -> None:
    url = serve(Commands())
    page = open_page("about:blank")
    for address in ("system", "backup", "review"):
        page.goto(f"{url}/wizard/{address}")
    press(page, SET_UP)
    page.wait_for_url(f"{url}/wizard/done")
    for _ in range(2):
        page.go_back()
        page.wait_for_url(f"{url}/wizard/done")
        expect_title(page, "agent-kitchen is ready")
        assert "kitchen-backup" not in page.content()


def test_the_record_can_be_downloaded(open_page: OpenPage, serve: Serve) -> None:
    url = serve(Commands())
    page = open_page(f"{url}/wizard/review")
    press(page, SET_UP)
    page.wait_for_url(f"{url}/wizard/done")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download a record").click()
    assert download.value.suggested_filename == "setup-record-agent-kitchen.json"


def test_ses_13_after_signing_out_no_page_is_shown(
    open_page: OpenPage, environment: dict[str, str]
) -> None:
    open_to_all = wizard_with(Commands(), environment | {"WIZARD_NO_TOKEN": "1"})
    answer(open_to_all, ANSWERS)
    open_to_all.test_client().post("/wizard/review/apply")
    with serving(wizard_with(Commands(), environment | {"WIZARD_TOKEN": TOKEN})) as url:
        page = open_page(f"{url}/?token={TOKEN}")
        page.wait_for_url(f"{url}/wizard/done")
        expect(page.get_by_text("setup session ends at")).to_be_visible()
        press(page, "Sign out")
        expect_title(page, "You are signed out")
        page.goto(f"{url}/wizard/done")
        expect_title(page, "You need a link to open setup")
        page.goto("about:blank")
