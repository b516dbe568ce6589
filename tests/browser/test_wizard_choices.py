"""Fields that belong to a choice: only shown with it, and always shown in older browsers."""

from __future__ import annotations

from playwright.sync_api import FilePayload, Page, Route, expect

from tests.browser.conftest import OpenPage
from tests.support.tunnel_credentials import credentials

ACCOUNT = "0123456789abcdef"
ADDRESS = f"https://{ACCOUNT}.r2.cloudflarestorage.com"


def go_on(page: Page) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name="Continue", exact=True).click()


def choose(page: Page, content: bytes) -> None:
    """Choose a file with credentials, and continue."""
    file = FilePayload(name="c.json", mimeType="application/json", buffer=content)
    page.set_input_files("#credentials-file", file)
    go_on(page)


def test_fields_are_only_shown_with_their_choice(
    url: str, open_page: OpenPage, scripts: bool
) -> None:
    page = open_page(f"{url}/wizard/backup", phone=True, java_script_enabled=scripts)
    fields = {kind: page.locator(f"#{kind}-bucket") for kind in "abc"}
    for field in fields.values():
        expect(field).to_be_hidden()
    for kind, field in fields.items():
        page.check(f"[value=store_{kind}]")
        for other in fields.values():
            expect(other).to_be_visible(visible=other is field)
    page.goto(f"{url}/wizard/tunnel")
    expect(page.get_by_label("Tunnel credentials")).to_be_hidden()
    page.check("[value=named]")
    expect(page.get_by_label("Tunnel credentials")).to_be_visible()


def test_a_browser_without_has_selectors_shows_all_fields_with_their_labels(
    url: str, open_page: OpenPage
) -> None:
    def older(route: Route) -> None:
        answer = route.fetch()
        # Such a browser ignores every rule with an unknown selector.
        route.fulfill(response=answer, body=answer.text().replace(":has(", ":unknown("))

    page = open_page("about:blank", phone=True)
    page.route("**/style*.css*", older)
    page.goto(f"{url}/wizard/backup")
    for store in ("Backblaze B2", "Cloudflare R2", "Other S3-compatible storage"):
        expect(page.get_by_role("group", name=store).get_by_label("Bucket name")).to_be_visible()
    page.check("[value=store_a]")
    go_on(page)
    expect(page.locator(".error li")).to_have_count(3)


def test_the_address_of_store_b_is_shown_while_its_account_is_typed(
    url: str, open_page: OpenPage
) -> None:
    page = open_page(f"{url}/wizard/backup")
    page.check("[value=store_b]")
    account, address = page.locator("#b-account-id"), page.locator("#goes-to")
    expect(address).to_be_hidden()
    account.fill(ACCOUNT)
    expect(address).to_have_text(f"Backups go to {ADDRESS}")
    account.fill("evil.example/")
    expect(address).to_be_hidden()


def test_credentials_are_read_from_a_file(url: str, open_page: OpenPage, scripts: bool) -> None:
    page = open_page(f"{url}/wizard/tunnel", phone=True, java_script_enabled=scripts)
    page.check("[value=named]")
    choose(page, b"no JSON")
    expect(page.locator(".error")).to_contain_text("line 1, column 1")
    choose(page, credentials(TunnelName="kitchen").encode())
    page.goto(f"{url}/wizard/tunnel")
    expect(page.get_by_label("Keep the credentials you entered before")).to_be_checked()
    expect(page.locator("main")).to_contain_text("They belong to the tunnel kitchen")
