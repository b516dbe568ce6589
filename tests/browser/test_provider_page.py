"""The provider page of the wizard in a browser: only the fields of the chosen provider."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, ServeWizard
from tests.support.accessibility import violations
from tests.support.devices import Device
from tests.support.key_tests import CANARY
from tests.support.layout import sideways_scroll, small_targets
from tests.support.raw_server import serving

LABELS = ("API key", "Secret access key", "Region", "Base URL", "Model")
NEEDED: Mapping[str, set[str]] = {
    "OpenRouter": {"API key", "Model"},
    "Amazon Bedrock": {"API key", "Secret access key", "Region", "Model"},
    "Hugging Face": {"API key", "Model"},
    "Another server": {"API key", "Base URL", "Model"},
    "Ollama on this device": {"Base URL", "Model"},
}


@pytest.fixture
def address(serve_wizard: ServeWizard, device: Device) -> str:
    """The page of a wizard on an offline build, which offers every provider."""
    device.put("/etc/platform/airgap.flag", "")
    return f"{serve_wizard().url}/wizard/provider"


def choose(page: Page, provider: str) -> None:
    """Choose a provider by its name."""
    page.get_by_role("radio", name=provider, exact=True).check()


def shown(page: Page) -> set[str]:
    """The visible fields."""
    return {label for label in LABELS if page.get_by_label(label, exact=True).is_visible()}


def test_only_the_fields_of_the_chosen_provider_are_shown(
    open_page: OpenPage, address: str, scripts: bool
) -> None:
    page = open_page(address, phone=True, java_script_enabled=scripts)
    assert shown(page) == NEEDED["OpenRouter"]
    for provider, labels in NEEDED.items():
        choose(page, provider)
        assert shown(page) == labels
        if scripts:
            assert (sideways_scroll(page), small_targets(page)) == ([], [])
            assert violations(page) == []


def test_a_typed_address_stays_visible(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    choose(page, "Another server")
    page.get_by_label("Base URL").fill("http://192.168.1.20:8000/v1")
    choose(page, "OpenAI")
    expect(page.get_by_label("Base URL")).to_be_visible()
    page.get_by_label("Base URL").fill("")
    expect(page.get_by_label("Base URL")).to_be_hidden()


def test_the_format_of_a_key_is_shown_beside_its_field(open_page: OpenPage, address: str) -> None:
    page = open_page(address)
    key = page.get_by_label("API key", exact=True)
    expect(key).to_have_accessible_description("sk-or-v1-...")
    choose(page, "Anthropic")
    expect(key).to_have_accessible_description("sk-ant-...")
    expect(page.get_by_text("https://api.anthropic.com")).to_be_visible()
    expect(page.get_by_text("https://openrouter.ai/api/v1")).to_be_hidden()


def test_a_rejected_key_can_be_entered_again_or_stored_untested(
    open_page: OpenPage, address: str, scripts: bool
) -> None:
    page = open_page(address, phone=True, java_script_enabled=scripts)
    with serving({}) as server:
        url = server.url
        choose(page, "Another server")
        page.get_by_label("API key", exact=True).fill(CANARY)
        page.get_by_label("Base URL").fill(url)
        page.get_by_label("Model").fill("small")
        page.get_by_role("button", name="Continue", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text(
            "There is no OpenAI-style service at this address"
        )
    if scripts:
        expect(page.get_by_role("alert")).to_be_focused()
        assert (sideways_scroll(page), violations(page)) == ([], [])
    assert CANARY not in page.content()
    expect(page.get_by_label("Base URL")).to_have_value(url)
    page.get_by_role("alert").get_by_role("link").click()
    expect(page.get_by_label("Base URL")).to_be_focused()
    page.get_by_text("Technical details").click()
    expect(page.get_by_text("HTTP 404", exact=True)).to_be_visible()
    page.get_by_label("API key", exact=True).fill(CANARY)
    page.get_by_label("Continue without testing").check()
    page.get_by_role("button", name="Continue", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Choose how to talk to your assistant"
    )
    page.goto(address)
    expect(page.get_by_label("Keep what you entered before for Another server")).to_be_checked()
    choose(page, "OpenAI")
    expect(page.get_by_label("Keep what you entered before")).to_be_hidden()
