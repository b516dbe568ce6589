"""Markup in what a device holds, what is typed and what is asked for: shown, and never more."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import ConsoleMessage, Dialog

from tests.browser.conftest import OpenPage
from tests.support.dashboard_states import MARKUP
from tests.support.scenes import serving
from tests.support.wizard_states import SCENES


def test_http_14_markup_is_shown_as_text(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page("about:blank", reduced_motion="reduce")
    happened: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        happened.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def listen(message: ConsoleMessage) -> None:
        # A channel that cannot be chosen is answered so.
        if "422" not in message.text and "[DOM]" not in message.text:
            happened.append(f"console: {message.text}")

    page.on("dialog", dismiss)
    page.on("console", listen)
    scene = SCENES["hostile"]
    with serving(scene.app(tmp_path)) as url:
        for view in scene.views:
            view.open(page, url)
            assert page.locator("script:not([src]), main img").count() == 0, view.name
            assert MARKUP[:20] in page.inner_text("body"), view.name
        for query in (f"?return={MARKUP}", f"?token={MARKUP}", f"?{MARKUP}={MARKUP}"):
            page.goto(f"{url}/wizard/system{quote(query, safe='?=')}")
            assert page.locator("script:not([src]), main img").count() == 0, query
        page.goto("about:blank")
    assert happened == []
