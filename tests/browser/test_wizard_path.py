"""The way through the wizard in a browser: forwards, backwards, and after interruptions."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, ServeWizard
from tests.support.browsers import send
from tests.support.web_servers import Served
from tests.support.wizard_states import ANSWERS, REFUSED, SECRETS, STEPS, Fields

TITLES: Mapping[str, str] = {
    "system": "Name this device",
    "profile": "Choose your assistant",
    "provider": "Choose your AI provider",
    "channels": "Choose how to talk to your assistant",
    "ssh": "Add SSH keys (optional)",
    "mesh-vpn": "Join a private network (optional)",
    "tunnel": "Access from the internet (optional)",
    "backup": "Back up this device (optional)",
    "review": "Check your answers",
}
NEVER_SHOWN = {"api_key", "authkey", "credentials"}
# The number of secrets of each step, as the pages list them when they are lost.
LOST_SECRETS = {"provider": 1, "mesh-vpn": 1, "tunnel": 1, "backup": 2}


def fill(page: Page, fields: Fields) -> None:
    """Fill in the visible fields of the form, as a person does."""
    for name, value in fields.items():
        field = page.locator(f'main [name="{name}"]')
        if field.first.get_attribute("type") in {"radio", "checkbox"}:
            for one in [value] if isinstance(value, str) else value:
                page.locator(f'main [name="{name}"][value="{one}"]').check()
        else:
            field.fill("".join(value))


def go_on(page: Page) -> None:
    """Press the button of the form, and wait for the next page."""
    with page.expect_navigation():
        page.get_by_role("button", name="Continue", exact=True).click()


def expect_step(page: Page, slug: str) -> None:
    """Wait until the page of a step, or the review page, is shown."""
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLES[slug])
    assert re.search(rf"/wizard/{slug}(\?|$)", page.url), page.url


def answer(page: Page, slug: str) -> None:
    """Answer the current step."""
    expect_step(page, slug)
    fill(page, ANSWERS[slug])
    go_on(page)


def walk(page: Page, url: str, until: str = "review") -> None:
    """Answer every step before `until`."""
    page.goto(url)
    for slug in STEPS:
        if slug == until:
            break
        answer(page, slug)
    expect_step(page, until)


def kill(wizard: Served) -> None:
    """Kill it at once, like a power cut."""
    os.killpg(wizard.process.pid, signal.SIGKILL)
    wizard.process.wait()


def lost_secrets(page: Page) -> list[str]:
    """The steps whose secrets must be entered again, one entry for each secret on the page."""
    notice = page.get_by_text("Keys and passwords are needed again")
    if notice.is_visible() and page.locator("details:has-text('needed again'):not([open])").count():
        notice.click()
    links = page.get_by_role("link").filter(has_text=re.compile("enter again"))
    return [
        (link.get_attribute("href") or "").removeprefix("/wizard/").partition("?")[0]
        for link in links.all()
        if link.is_visible()
    ]


def typed(page: Page) -> str:
    """The page with the content of its fields."""
    values: list[str] = page.evaluate(
        "[...document.querySelectorAll('input, textarea')].map(field => field.value)"
    )
    return "\n".join([page.content(), *values])


def secrets_in(page: Page) -> list[str]:
    """The secrets that occur anywhere in the page."""
    return [secret for secret in SECRETS if secret in typed(page)]


def test_nine_pages_lead_to_a_review_of_every_answer(
    scripts: bool, open_page: OpenPage, url: str
) -> None:
    page = open_page(url, phone=scripts, java_script_enabled=scripts)
    for number, slug in enumerate(STEPS, 1):
        expect_step(page, slug)
        expect(page.locator(".caption")).to_have_text(f"Step {number} of {len(TITLES)}")
        answer(page, slug)
        assert secrets_in(page) == []
    expect_step(page, "review")
    review = page.locator("main").inner_text()
    for value in ("agent-kitchen", "Europe/Berlin", "OpenClaw", "OpenAI", "kitchen-backup"):
        assert value in review
    assert secrets_in(page) == []


@pytest.mark.long
def test_ses_10_back_shows_the_answers_and_later_answers_are_kept(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(url)
    for slug, following in zip(STEPS, [*STEPS[1:], "review"], strict=True):
        answer(page, slug)
        page.go_back()
        expect_step(page, slug)
        assert secrets_in(page) == []
        page.go_forward()
        expect_step(page, following)
        page.get_by_role("link", name="Back", exact=True).click()
        expect_step(page, slug)
        page.reload()
        expect_step(page, slug)
        assert secrets_in(page) == []
        page.goto(f"{url}/wizard/{following}")
    page.goto(f"{url}/wizard/system")
    expect(page.get_by_label("Device name")).to_have_value("agent-kitchen")
    page.get_by_label("Device name").fill("agent-garden")
    go_on(page)
    expect_step(page, "profile")
    page.goto(url)
    expect_step(page, "review")
    for value in ("agent-garden", "kitchen-backup"):
        assert value in page.locator("main").inner_text()


@pytest.mark.long
def test_every_change_link_leads_to_its_step_and_back_to_the_review_page(
    open_page: OpenPage, url: str
) -> None:
    page = open_page("about:blank")
    walk(page, url)
    assert page.get_by_role("link", name="Change").count() >= len(STEPS)
    for slug in STEPS:
        page.locator(f'main a[href="/wizard/{slug}?return=review"]').first.click()
        expect_step(page, slug)
        page.get_by_role("link", name="Back", exact=True).click()
        expect_step(page, "review")
        page.locator(f'main a[href="/wizard/{slug}?return=review"]').first.click()
        fill(page, ANSWERS[slug])
        go_on(page)
        expect_step(page, "review")


@pytest.mark.long
def test_http_17_the_back_button_shows_no_secret(open_page: OpenPage, url: str) -> None:
    page = open_page("about:blank")
    walk(page, url)
    for slug in reversed(STEPS):
        page.go_back()
        expect_step(page, slug)
        assert secrets_in(page) == [], slug


@pytest.mark.long
def test_two_tabs_neither_mix_nor_lose_answers(open_page: OpenPage, url: str) -> None:
    one = open_page(url)
    other = one.context.new_page()
    other.goto(one.url)
    answer(one, "system")
    other.get_by_label("Device name").fill("agent-garden")
    go_on(other)
    expect_step(other, "system")
    expect(other.get_by_role("status").first).to_contain_text("answered in another tab")
    expect(other.get_by_label("Device name")).to_have_value("agent-garden")
    # Another step of the first tab is not affected.
    answer(one, "profile")
    expect_step(one, "provider")
    go_on(other)
    expect_step(other, "profile")
    one.goto(f"{url}/wizard/system")
    expect(one.get_by_label("Device name")).to_have_value("agent-garden")


def test_two_browsers_share_the_answers(open_page: OpenPage, url: str) -> None:
    walk(open_page("about:blank"), url, "channels")
    expect_step(open_page(url, phone=True), "channels")


@pytest.mark.long
def test_a_power_cut_at_any_step_loses_no_answer(
    open_page: OpenPage, serve_wizard: ServeWizard
) -> None:
    wizard = serve_wizard()
    page = open_page(wizard.url)
    lost: list[str] = []
    for slug, following in zip(STEPS, [*STEPS[1:], "review"], strict=True):
        answer(page, slug)
        kill(wizard)
        wizard = serve_wizard(port=wizard.port)
        page.goto(wizard.url)
        expect_step(page, following)
        lost += [slug] if slug in LOST_SECRETS else []
        assert lost_secrets(page) == [link for one in lost for link in [one] * LOST_SECRETS[one]]
    for slug in lost:
        page.locator(f'main a[href="/wizard/{slug}?return=review"]').first.click()
        fill(page, ANSWERS[slug])
        go_on(page)
        expect_step(page, "review")
    assert lost_secrets(page) == []


def tab_to(page: Page, selector: str) -> None:
    """Press the Tab key until the element has the focus."""
    for _ in range(200):
        if page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the Tab key does not lead to {selector}")


def press_answer(page: Page, fields: Fields) -> None:
    """Answer the form with only the keyboard."""
    for name, value in fields.items():
        kind = page.locator(f'main [name="{name}"]').first.get_attribute("type")
        if kind == "radio":
            tab_to(page, f'main [name="{name}"]')
            page.keyboard.press("Space")
            while not page.locator(f'[name="{name}"][value="{value}"]').is_checked():
                page.keyboard.press("ArrowDown")
        elif kind == "checkbox":
            for one in [value] if isinstance(value, str) else value:
                tab_to(page, f'main [name="{name}"][value="{one}"]')
                page.keyboard.press("Space")
        else:
            tab_to(page, f'main [name="{name}"]')
            page.keyboard.press("Control+A")
            page.keyboard.insert_text("".join(value))
    tab_to(page, "main form .row button")
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_n22_the_wizard_can_be_completed_with_the_keyboard(open_page: OpenPage, url: str) -> None:
    page = open_page(url)
    for slug in STEPS:
        expect_step(page, slug)
        press_answer(page, ANSWERS[slug])
    expect_step(page, "review")
    tab_to(page, 'main a[href="/wizard/backup?return=review"]')
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect_step(page, "backup")


def test_the_enter_key_never_chooses_the_suggested_name(open_page: OpenPage, url: str) -> None:
    page = open_page(url)
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("Device name").fill("My Kitchen")
    go_on(page)
    expect(page.get_by_role("button", name="Use my-kitchen")).to_be_visible()
    page.get_by_label("Device name").fill("garden")
    with page.expect_navigation():
        page.get_by_label("Device name").press("Enter")
    expect_step(page, "profile")
    page.get_by_role("link", name="Back", exact=True).click()
    expect(page.get_by_label("Device name")).to_have_value("garden")


@pytest.mark.long
def test_every_error_links_to_its_field_and_typed_text_is_kept(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(url, phone=True)
    send(page, f"{url}/wizard/profile", ANSWERS["profile"])
    for slug, forms in REFUSED.items():
        for wrong, fields in forms.items():
            page.goto(f"{url}/wizard/{slug}")
            send(page, f"{url}/wizard/{slug}", fields)
            about = f"{slug}: {wrong}"
            assert page.title().startswith("Error: "), about
            summary = page.get_by_role("alert")
            expect(summary, about).to_be_focused()
            links = summary.get_by_role("link")
            assert links.count() == summary.get_by_role("listitem").count() > 0, about
            for one in links.all():
                one.click()
                name = page.evaluate("document.activeElement.id || document.activeElement.name")
                field = page.locator(page.evaluate("location.hash"))
                expect(field).to_be_in_viewport()
                assert name, about
                words = one.inner_text()
                near = page.locator(".mistake").filter(has_text=words)
                assert near.count() >= 1, (about, words)
            for name, value in fields.items():
                shown = page.locator(f'main [name="{name}"]:not([type=radio], [type=checkbox])')
                again = "" if name in NEVER_SHOWN or "PRIVATE KEY" in value else "".join(value)
                if shown.count():
                    expect(shown, about).to_have_value(again)


def test_the_browser_suggests_its_time_zone_once(open_page: OpenPage, url: str) -> None:
    page = open_page(url, timezone_id="Asia/Kathmandu", locale="en-GB")
    zone = page.get_by_label("Time zone")
    assert zone.input_value() in {"Asia/Kathmandu", "Asia/Katmandu"}
    expect(page.get_by_text("Filled in from your browser.")).to_be_visible()
    page.get_by_label("Device name").fill("")
    zone.fill("Europe/Berlin")
    go_on(page)
    expect(zone).to_have_value("Europe/Berlin")
    page.get_by_label("Device name").fill("agent-kitchen")
    go_on(page)
    page.goto(f"{url}/wizard/system")
    expect(zone).to_have_value("Europe/Berlin")
    expect(page.get_by_text("Filled in from your browser.")).to_be_hidden()


def test_the_address_of_the_device_is_shown_while_its_name_is_typed(
    open_page: OpenPage, url: str
) -> None:
    page = open_page(url)
    name, address = page.get_by_label("Device name"), page.locator("#reached")
    name.fill("agent-garden")
    expect(address).to_have_text("You will reach it at agent-garden.local")
    name.fill("Not a name")
    expect(address).to_be_hidden()


def test_colours_and_language_can_be_chosen_on_any_page(
    scripts: bool, open_page: OpenPage, url: str
) -> None:
    page = open_page("about:blank", phone=True, java_script_enabled=scripts, locale="en-GB")
    walk(page, url, "profile")
    page.get_by_label("Colours").select_option("dark")
    page.get_by_label("Language").select_option("de")
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    assert page.url == f"{url}/wizard/profile"
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator("html").get_attribute("lang") == "de"
