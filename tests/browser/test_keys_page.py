"""The pages of the keys in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, ServeDashboard
from tests.support import key_states
from tests.support.control_cli import FakeCtl
from tests.support.key_states import HOSTILE

CANARY = "sk-canary-0123456789abcdef"
SET = "model set --provider openai --key-from-stdin --yes"
TEST = "model test --provider openai --key-from-stdin --json"


@pytest.fixture
def address(serve_dashboard: ServeDashboard, ctl: FakeCtl) -> str:
    """A dashboard with several providers, on which key tests and changes succeed."""
    key_states.several(ctl)
    ctl.answer(SET, "Stored\n")
    ctl.answer(TEST, {"ok": True, "http_status": 200})
    return f"{serve_dashboard(**ctl.environment).url}/app/keys"


def test_a_key_is_replaced_from_its_card(
    open_page: OpenPage, address: str, ctl: FakeCtl, scripts: bool
) -> None:
    page = open_page(address, phone=scripts, java_script_enabled=scripts)
    openai = page.get_by_role("article", name="OpenAI")
    expect(openai.get_by_label("New key for OpenAI", exact=True)).to_be_hidden()
    openai.locator("summary").click()
    openai.get_by_label("New key for OpenAI", exact=True).fill(CANARY)
    openai.get_by_role("button", name="Replace key").click()
    expect(page.get_by_role("status")).to_have_text("Done Rotated openai successfully.")
    assert page.url == address
    assert CANARY not in page.content()
    (change,) = [call for call in ctl.calls() if call["words"] == SET.split()]
    assert change["stdin"].strip() == CANARY
    page.reload()
    expect(page.get_by_text("Rotated openai")).to_have_count(0)


def test_a_rejected_key_is_reported_and_not_stored(
    open_page: OpenPage, address: str, ctl: FakeCtl, scripts: bool
) -> None:
    ctl.answer(TEST, {"http_status": 401, "error": "OpenAI rejected this key (HTTP 401)"}, status=1)
    page = open_page(address, java_script_enabled=scripts)
    page.get_by_role("link", name="OpenAI", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Replace the OpenAI key")
    expect(page.get_by_label("Test before saving")).to_be_checked()
    page.get_by_label("New key", exact=True).fill(CANARY)
    page.get_by_role("button", name="Replace key").click()
    expect(page.get_by_role("alert")).to_contain_text("OpenAI rejected this key (HTTP 401)")
    assert SET not in ctl.words()


def test_the_stored_key_is_tested_with_one_button(
    open_page: OpenPage, address: str, ctl: FakeCtl
) -> None:
    ctl.answer("model test --provider openai --json", {"ok": True, "http_status": 200})
    page = open_page(f"{address}/openai")
    page.get_by_role("button", name="Test the stored key").click()
    expect(page.get_by_role("status")).to_have_text("Done openai accepts the stored key.")
    assert page.url == f"{address}/openai"


def test_everything_can_be_done_with_the_keyboard(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    summary = page.get_by_role("article", name="OpenAI").locator("summary")
    for _ in range(60):
        page.keyboard.press("Tab")
        if summary.evaluate("e => e === document.activeElement"):
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type(CANARY)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Done Rotated openai successfully.")


def test_a_key_is_hidden_until_its_button_is_pressed(open_page: OpenPage, address: str) -> None:
    page = open_page(f"{address}/bedrock")
    field = page.get_by_label("Secret access key", exact=True)
    field.fill(CANARY)
    expect(field).to_have_attribute("type", "password")
    page.get_by_role("button", name="Show Secret access key").click()
    expect(field).to_have_attribute("type", "text")
    page.get_by_role("button", name="Hide Secret access key").click()
    expect(field).to_have_attribute("type", "password")


def test_going_back_does_not_bring_a_key_back(open_page: OpenPage, address: str) -> None:
    page = open_page(f"{address}/openai")
    page.get_by_label("New key", exact=True).fill(CANARY)
    page.get_by_role("button", name="Replace key").click()
    page.wait_for_url(address)
    page.go_back()
    expect(page.get_by_label("New key", exact=True)).to_have_value("")


def test_http_14_hostile_names_run_no_script(
    open_page: OpenPage, serve_dashboard: ServeDashboard, ctl: FakeCtl
) -> None:
    key_states.hostile(ctl)
    said = f"error: {HOSTILE}\n"
    ctl.answer("model set --provider fine --key-from-stdin --yes", status=1, errors=said)
    app = serve_dashboard(**ctl.environment)
    page = open_page(f"{app.url}/app/keys/fine")
    page.get_by_label("Test before saving").uncheck()
    page.get_by_label("New access key id", exact=True).fill(CANARY)
    page.get_by_role("button", name="Replace key").click()
    expect(page.get_by_role("alert")).to_contain_text(HOSTILE)
    assert page.locator("main script, main img").count() == 0
