"""The log in a browser: following, pausing, filtering, and hostile content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, ServeDashboard
from tests.support.control_cli import FakeCtl
from tests.support.journals import HOSTILE, NEXT_BOOT, Logged, RealJournal
from tests.support.log_states import STATUS, usual

pytestmark = pytest.mark.long

# Polls are two seconds apart, after a failure up to fifteen; and the machine may be busy.
PATIENCE_MS = 60_000
OpenLog = Callable[..., Page]


@pytest.fixture
def real(tmp_path: Path) -> RealJournal:
    return RealJournal(tmp_path / "journal")


@pytest.fixture
def open_log(
    serve_dashboard: ServeDashboard, open_page: OpenPage, ctl: FakeCtl, real: RealJournal
) -> OpenLog:
    """Open the log of a dashboard that reads `real`."""
    ctl.answer("status --json", STATUS)
    url = serve_dashboard(**ctl.environment, **real.environment).url

    def open_(query: str = "", **options: object) -> Page:
        page = open_page(f"{url}/app/logs{query}", **options)
        page.set_default_timeout(PATIENCE_MS)
        return page

    return open_


def wait_for_line(page: Page, text: str) -> None:
    expect(page.locator("#log > span", has_text=text)).to_have_count(1, timeout=PATIENCE_MS)


def at_bottom(page: Page) -> bool:
    found: bool = page.evaluate("log.scrollHeight - log.scrollTop - log.clientHeight < 24")
    return found


def lines(count: int, word: str = "line") -> list[str | bytes | Logged]:
    return [f"{word} {number}." for number in range(count)]


def test_new_lines_appear_while_the_page_is_open(open_log: OpenLog, real: RealJournal) -> None:
    real.write(*lines(100))
    page = open_log()
    assert at_bottom(page)
    real.write(Logged("a warning", 4), Logged("an error", 3), Logged("again", boot=NEXT_BOOT))
    wait_for_line(page, "again")
    assert at_bottom(page)
    expect(page.locator("#log .warning")).to_contain_text("a warning")
    expect(page.locator("#log .err")).to_contain_text("an error")
    expect(page.locator("#log .mark").last).to_contain_text("device restarted ")
    expect(page.locator("#state")).to_have_text("Live")
    real.write("and once more")
    wait_for_line(page, "and once more")
    assert page.locator("#log > span", has_text="again").count() == 1


def test_a_reader_who_scrolled_up_is_not_moved(open_log: OpenLog, real: RealJournal) -> None:
    real.write(*lines(200))
    page = open_log("?lines=200")
    page.evaluate("log.scrollTop = 0")
    real.write(*lines(12, "new"))
    news = page.get_by_role("status").get_by_role("button")
    expect(news).to_have_text("12 new lines", timeout=PATIENCE_MS)
    assert page.evaluate("log.scrollTop") == 0
    news.click()
    assert at_bottom(page)
    expect(page.locator("#news")).to_be_hidden()


def test_a_paused_log_shows_no_new_lines_until_it_is_resumed(
    open_log: OpenLog, real: RealJournal
) -> None:
    real.write(*lines(3))
    page = open_log()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#state")).to_have_text("Paused")
    real.write("while it was held")
    expect(page.locator("#news")).to_have_text("1 new line", timeout=PATIENCE_MS)
    assert page.locator("#log > span", has_text="held").count() == 0
    page.get_by_role("button", name="Follow").click()
    wait_for_line(page, "while it was held")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_lines_appear_in_an_empty_log(open_log: OpenLog, real: RealJournal) -> None:
    real.write(Logged("x", unit="other.service"))
    page = open_log()
    expect(page.locator("#log")).to_contain_text("openclaw.service has not logged anything.")
    real.write("the first")
    wait_for_line(page, "the first")
    expect(page.locator("#log")).not_to_contain_text("nothing")


def test_new_lines_are_filtered_too(open_log: OpenLog, real: RealJournal) -> None:
    real.write(Logged("first fault", 3), "usual")
    page = open_log()
    page.get_by_label("Level").select_option("Errors")
    page.get_by_label("Contains").fill("fault")
    page.get_by_role("button", name="Apply filters").click()
    wait_for_line(page, "first fault")
    assert page.locator("#log > span:not(.mark)").count() == 1
    real.write("no fault", Logged("another", 3), Logged("second fault", 3))
    wait_for_line(page, "second fault")
    assert page.locator("#log > span:not(.mark)").count() == 2
    page.get_by_role("link", name="Clear filters").click()
    wait_for_line(page, "usual")


def test_a_log_that_disappears_is_requested_again(
    open_log: OpenLog, real: RealJournal, tmp_path: Path
) -> None:
    real.write("before")
    page = open_log()
    away = real.folder.rename(tmp_path / "away")
    expect(page.locator("#state")).to_have_text("Reconnecting in 4 s", timeout=PATIENCE_MS)
    away.rename(real.folder)
    real.write("after")
    wait_for_line(page, "after")
    expect(page.locator("#state")).to_have_text("Live")


def test_a_hidden_page_does_not_poll(open_log: OpenLog, real: RealJournal) -> None:
    real.write("before")
    page = open_log()
    page.clock.install()
    page.reload()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_response("**/app/logs/tail?*"):
        page.clock.run_for(5_000)
    page.evaluate(
        """() => {
        Object.defineProperty(document, "hidden", {get: () => window.away, configurable: true});
        window.away = true;
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    )
    before = len(asked)
    page.clock.run_for(600_000)
    assert len(asked) == before > 0
    real.write("meanwhile")
    page.evaluate("away = false; document.dispatchEvent(new Event('visibilitychange'))")
    wait_for_line(page, "meanwhile")


def test_after_a_long_absence_the_page_shows_the_newest_lines_and_a_note(
    open_log: OpenLog, real: RealJournal
) -> None:
    real.write("before")
    page = open_log()
    real.write(*lines(700, "new"))
    wait_for_line(page, "new 699.")
    expect(page.locator("#log .mark").first).to_contain_text("Earlier lines are not shown here.")
    assert page.locator("#log > span", has_text="before.").count() == 0


def test_at_most_five_thousand_rows_are_kept(open_log: OpenLog, real: RealJournal) -> None:
    real.write(*lines(1000))
    page = open_log("?lines=1000")
    page.evaluate(
        """() => {
        const row = log.lastElementChild;
        for (let n = 0; n < 4100; n++) log.append(row.cloneNode(true));
    }"""
    )
    real.write("the last")
    wait_for_line(page, "the last")
    assert page.evaluate("log.childElementCount") == 5000


def test_wrap_and_the_number_of_lines_are_remembered(open_log: OpenLog, real: RealJournal) -> None:
    real.write(*lines(60))
    page = open_log()
    address = page.url
    wrap = page.get_by_role("button", name="Wrap")
    expect(wrap).to_have_attribute("aria-pressed", "true")
    wrap.click()
    page.get_by_label("Lines").fill("20")
    page.get_by_role("button", name="Apply filters").click()
    expect(page.locator("#log")).to_contain_text("line 40.")
    page.goto(address)
    page.wait_for_url("**?lines=20")
    expect(page.get_by_label("Lines")).to_have_value("20")
    expect(page.get_by_role("button", name="Wrap")).to_have_attribute("aria-pressed", "false")
    assert "wrap" not in (page.locator("#log").get_attribute("class") or "").split()


def test_the_command_can_be_copied(open_log: OpenLog, real: RealJournal) -> None:
    real.write("x")
    page = open_log(permissions=["clipboard-read", "clipboard-write"])
    page.get_by_text("Other ways to read this log").click()
    page.get_by_role("button", name="Copy").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "journalctl --unit=openclaw.service --lines=100"


def test_cli_11_hostile_lines_run_no_script(
    open_log: OpenLog, real: RealJournal, scripts: bool
) -> None:
    real.write("before", *HOSTILE.values())
    page = open_log("?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", java_script_enabled=scripts)
    page.goto(page.url.partition("?")[0] + "?lines=1000")
    assert page.locator("#log").count() == 1
    assert page.locator("#log script, #log img, #log svg").count() == 0
    expect(page.locator("#log")).to_contain_text("</pre><script>alert(1)</script><pre>")
    if scripts:
        # Lines that arrive later are inserted by the script.
        real.write(*HOSTILE.values(), "the very last")
        wait_for_line(page, "the very last")
        assert page.locator("#log script, #log img, #log svg").count() == 0
        assert page.evaluate("document.querySelectorAll('pre').length") == 1


def test_without_a_script_the_page_is_complete(open_log: OpenLog, real: RealJournal) -> None:
    usual(real)
    page = open_log(java_script_enabled=False)
    expect(page.locator("#log")).to_contain_text("gateway listening")
    page.get_by_label("Level").select_option("Warnings and errors")
    page.get_by_role("button", name="Apply filters").click()
    expect(page.get_by_text("Showing 2 of the last 22 lines.")).to_be_visible()
    expect(page.locator("#log > span:not(.mark)")).to_have_count(2)
    with page.expect_download() as found:
        page.get_by_role("link", name="Download", exact=True).click()
    assert "401" in found.value.path().read_text()
    for button in ("Pause", "Wrap", "Copy"):
        expect(page.get_by_role("button", name=button)).to_have_count(0)


def test_the_page_can_be_used_with_the_keyboard(open_log: OpenLog, real: RealJournal) -> None:
    real.write(*lines(100), Logged("a fault", 3))
    page = open_log()
    address = page.url
    page.get_by_label("Unit").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("e")
    for _ in range(4):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**prio=error**")
    expect(page.locator("#log > span:not(.mark)")).to_have_count(1)
    page.goto(address)
    page.get_by_role("link", name="Download", exact=True).focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("region", name="Log of openclaw.service")).to_be_focused()
    page.keyboard.press("Home")
    expect(page.locator("#log > span").first).to_be_in_viewport()
