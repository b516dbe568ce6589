"""A newcomer's way through the product in a browser: link, nine pages, chat, dashboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dev.samples.device import make_profiles, place_gateway
from tests.browser.conftest import OpenPage, ServeDashboard, ServeWizard
from tests.browser.test_wizard_path import expect_step, fill, go_on, secrets_in
from tests.support.gateways import stand_in
from tests.support.releases import program
from tests.support.wizard_states import ANSWERS, SECRETS, STEPS, TOKEN, Fields

# Values other than the suggested ones, and other than those of a device without answers.
CHOSEN: Mapping[str, Fields] = {
    **ANSWERS,
    "profile": {"profile": "hermes"},
    "provider": {
        **ANSWERS["provider"],
        "provider": "openrouter",
        "model": "some-maker/some-model",
    },
    "channels": {"channels": ["telegram", "email-imap-smtp"]},
}
QUESTION = "How *late* is it in <b>Berlin</b>?"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A device in a folder; the gateway of its profiles is a running stand-in."""
    root = tmp_path / "dev-out"
    (root / "etc/platform").mkdir(parents=True)
    make_profiles(root)
    with stand_in() as url:
        assert place_gateway(root, url)
        yield root


def set_up(page: Page) -> None:
    """Answer all nine pages, and set up the device."""
    for slug in STEPS:
        expect_step(page, slug)
        fill(page, CHOSEN[slug])
        go_on(page)
    expect_step(page, "review")
    page.get_by_role("button", name="Set up this device").click()
    expect(page).to_have_url(re.compile("/wizard/done$"), timeout=60_000)


def chat(page: Page) -> None:
    """Send a message, and wait for the answer."""
    page.get_by_role("link", name=re.compile("chat", re.IGNORECASE)).first.click()
    expect(page).to_have_url(re.compile("/chat$"))
    page.locator('textarea[name="message"]').fill(QUESTION)
    page.get_by_role("button", name="Send").click()
    main = page.locator("main")
    expect(main.get_by_text("I am a stand-in, not an assistant.")).to_have_count(1)
    # The gateway's answer is rendered as Markdown, the person's message is not.
    expect(main.locator("strong", has_text="I am a stand-in")).to_have_count(1)
    expect(main.locator("table")).to_have_count(1)
    expect(main.get_by_text(QUESTION, exact=True)).to_have_count(1)
    expect(main.locator("b")).to_have_count(0)


def test_the_link_leads_through_setup_to_chat_and_dashboard_without_leaking_secrets(
    scripts: bool,
    folder: Path,
    open_page: OpenPage,
    serve_wizard: ServeWizard,
    serve_dashboard: ServeDashboard,
) -> None:
    wizard = serve_wizard(WIZARD_TOKEN=TOKEN, WIZARD_DEV_OUT=str(folder))
    dashboard = serve_dashboard(PLATFORM_ROOT=str(folder), PLATFORM_CTL=program("platformctl"))
    page = open_page(f"{dashboard.url}/app/dashboard", java_script_enabled=scripts)
    facts = page.locator("#gateway .facts")
    expect(facts).not_to_contain_text("Hermes")

    page.goto(f"{wizard.url}/?token={TOKEN}")
    set_up(page)
    chat(page)
    page.reload()
    expect(page.get_by_text("I am a stand-in, not an assistant.")).to_have_count(1)
    assert secrets_in(page) == []

    page.goto(dashboard.url)
    for label, value in {
        "Profile": "Hermes Agent",
        "Provider": "OpenRouter",
        "Model": "some-maker/some-model",
        "Channels": "Telegram, E-mail",
    }.items():
        row = facts.locator("dt", has_text=re.compile(f"^{label}$"))
        expect(row.locator("xpath=following-sibling::dd[1]")).to_have_text(value)
    assert secrets_in(page) == []

    # All created files are in one folder.
    turns = (folder / "home/agent/.hermes/chat-history.jsonl").read_text().splitlines()
    assert [json.loads(turn)["role"] for turn in turns] == ["user", "assistant"]
    assert json.loads(turns[0])["content"] == QUESTION
    holding = {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and any(secret in path.read_text("utf-8") for secret in SECRETS)
    }
    assert holding == {
        "etc/platform/secrets.env",
        "etc/platform/rclone.conf",
        "etc/platform/tunnel/credentials.json",
    }
