"""The chat in a browser, with and without scripts, and with all kinds of failures."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage, ServeWizard
from tests.browser.test_wizard_path import tab_to
from tests.support import chat_states, gateways
from tests.support.accessibility import violations
from tests.support.browsers import send, until
from tests.support.chat_states import ANSWER, QUESTION, put_turns
from tests.support.devices import Device
from tests.support.gateways import DONE, EVENTS, delta, said, stand_in
from tests.support.hostile_text import XSS
from tests.support.layout import focus_walk, sideways_scroll, small_targets
from tests.support.network import free_port
from tests.support.raw_server import RawServer, Request
from tests.support.waiting import wait_until
from tests.support.web_servers import Served
from tests.support.wizard_states import TOKEN

pytestmark = pytest.mark.long

COMPLETIONS = 'protocol = "chat-completions"'
Talk = Callable[[str], Served]
IN_VIEW = "document.getElementById('latest').getBoundingClientRect().bottom < innerHeight"


class Speaker:
    """A gateway that sends its answers piece by piece, when a test tells it to."""

    def __init__(self) -> None:
        self.gone = 0
        self._pieces: queue.Queue[str | None] = queue.Queue()
        self.server = RawServer(self._answer)

    def say(self, *pieces: str) -> None:
        """Send these pieces of an answer."""
        for piece in pieces:
            self._pieces.put(piece)

    def end(self, *pieces: str) -> None:
        """Send these pieces, and end the answer."""
        self.say(*pieces)
        self._pieces.put(None)

    def asked(self) -> list[str]:
        """The messages that it has received."""
        bodies = [json.loads(one.body) for one in self.server.requests if one.body]
        return [body["messages"][-1]["content"] for body in bodies]

    def _answer(self, request: Request, connection: socket.socket) -> None:
        if not request.body:
            connection.sendall(said({"status": "ok"}))
            return
        connection.sendall(EVENTS)
        try:
            while (piece := self._next()) is not None:
                connection.sendall(f"{delta(piece)}\n\n".encode())
            connection.sendall(DONE.encode())
        except OSError:
            self.gone += 1

    def _next(self) -> str | None:
        while not self.server.stopping.is_set():
            try:
                return self._pieces.get(timeout=0.05)
            except queue.Empty:
                continue
        return None


@pytest.fixture
def speaker() -> Iterator[Speaker]:
    made = Speaker()
    with made.server:
        yield made


@pytest.fixture
def out(tmp_path: Path) -> Device:
    """The folder that the wizard sets up."""
    return Device(tmp_path / "dev-out")


@pytest.fixture
def talk(out: Device, serve_wizard: ServeWizard, open_page: OpenPage) -> Talk:
    """Serve a wizard that has a profile whose gateway is at a given address."""

    def serve(url: str) -> Served:
        gateways.install(out.root, url, COMPLETIONS)
        wizard = serve_wizard()
        page = open_page(f"{wizard.url}/wizard/profile")
        send(page, f"{wizard.url}/wizard/profile", {"profile": "box"})
        page.context.close()
        return wizard

    return serve


@pytest.fixture
def page(talk: Talk, speaker: Speaker, open_page: OpenPage) -> Page:
    """The chat with the speaker."""
    return open_page(f"{talk(speaker.server.url).url}/chat")


def turns(out: Device) -> list[dict[str, Any]]:
    """The stored turns."""
    history = out.root / "home/agent/.box/chat-history.jsonl"
    return [json.loads(line) for line in history.read_bytes().splitlines()]


def field(page: Page) -> Locator:
    return page.get_by_label("Message to Box")


def say(page: Page, text: str) -> None:
    """Send a message, as a person does."""
    field(page).fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


def expect_answer_finished(page: Page) -> None:
    """Wait until no answer is being written."""
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator("#state")).to_have_text("")


def record_announcements(page: Page) -> None:
    """Record what screen readers would announce, in `window.announced`."""
    page.evaluate(
        """() => {
          window.announced = [];
          for (const live of document.querySelectorAll("[role=status], [role=alert]")) {
            new MutationObserver(() => {
              if (live.textContent.trim()) announced.push(live.textContent.trim());
            }).observe(live, {childList: true, characterData: true, subtree: true});
          }
        }"""
    )


def test_an_answer_appears_while_it_is_written_and_then_as_markdown(
    speaker: Speaker, page: Page, out: Device
) -> None:
    expect(page.locator("#latest")).to_have_text("No messages yet.")
    expect(page.locator("#gateway")).to_contain_text("Ready")
    record_announcements(page)
    say(page, "What is\n<b>new</b>?")
    mine, its = page.locator(".turn.user .said"), page.locator(".turn.assistant .said")
    expect(mine).to_have_text("What is\n<b>new</b>?", use_inner_text=True)
    expect(page.locator("#state")).to_have_text("Box is writing…")
    expect(field(page)).to_have_value("")
    expect(field(page)).to_be_focused()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_hidden()
    speaker.say("**Some", "thing** <i>n")
    expect(its).to_have_text("**Something** <i>n")
    speaker.say("ew</i>\n\n| a |\n|---|\n| 1 |\n")
    expect(its).to_contain_text("| 1 |")
    assert page.locator(".said :is(strong, table, i, b)").count() == 0
    assert [one["role"] for one in turns(out)] == ["user"]
    assert violations(page) == []
    speaker.end()
    expect(its.locator("strong")).to_have_text("Something")
    expect(its.locator("table td")).to_have_text("1")
    expect(page.locator(".turn time")).to_have_count(2)
    expect_answer_finished(page)
    expect(field(page)).to_be_focused()
    expect(page.locator("#heard")).to_have_text("")
    announced = page.evaluate("announced")
    assert announced[0] == "Box is writing…"
    assert [text for text in announced[1:] if "Something" in text] == announced[1:]
    assert len(announced) == 2
    # The page as it would look if it was opened now.
    before = page.locator("#messages").inner_html()
    page.reload()
    assert page.locator("#messages").inner_html().split() == before.split()


def test_stop_ends_the_answer_and_the_received_part_is_kept(
    speaker: Speaker, page: Page, out: Device
) -> None:
    say(page, "Tell me all")
    speaker.say("It began ")
    expect(page.locator(".turn.assistant .said")).to_have_text("It began")
    page.get_by_role("button", name="Stop").click()
    expect_answer_finished(page)
    expect(page.locator(".turn.assistant .stopped")).to_be_visible()
    expect(page.locator("#message-error")).to_have_text("")
    expect(field(page)).to_be_focused()
    expect(field(page)).to_have_value("")

    def noticed() -> bool:
        speaker.say("and so on ")
        return len(turns(out)) == 2 and speaker.gone == 1

    wait_until(noticed)
    assert turns(out)[1]["stopped"] is True
    assert turns(out)[1]["content"].startswith("It began ")
    page.reload()
    expect(page.locator(".turn.assistant .stopped")).to_be_visible()


def test_a_message_to_a_stopped_gateway_can_be_sent_again_later(
    talk: Talk, open_page: OpenPage
) -> None:
    port = free_port()
    page = open_page(f"{talk(f'http://127.0.0.1:{port}').url}/chat")
    expect(page.locator("#gateway")).to_contain_text("Not answering yet")
    record_announcements(page)
    say(page, "Are you there?")
    failed = page.locator(".turn.failed")
    expect(failed).to_contain_text("No answer")
    expect(failed).to_contain_text("refused the connection")
    expect(field(page)).to_have_value("Are you there?")
    expect_answer_finished(page)
    assert violations(page) == []
    announced = page.evaluate("announced")
    assert len(announced) == 2
    assert "No answer" in announced[1]
    # A reload does not lose the text either.
    page.reload()
    expect(field(page)).to_have_value("Are you there?")
    with stand_in(port=port):
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.locator(".turn.assistant")).to_contain_text("I am a stand-in")
        expect(page.locator("#gateway")).to_contain_text("Ready")
    expect(field(page)).to_have_value("")
    expect(page.locator(".turn.user")).to_have_count(2)


def test_without_a_network_the_typed_text_is_kept(
    talk: Talk, speaker: Speaker, stranger: Page, out: Device
) -> None:
    page = stranger
    page.goto(f"{talk(speaker.server.url).url}/chat")
    page.context.set_offline(True)
    say(page, "Hello?")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("This device cannot be reached, so your message was not sent.")
    expect(field(page)).to_have_value("Hello?")
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator("#latest")).to_be_visible()
    assert violations(page) == []
    page.context.set_offline(False)
    speaker.end("Hi")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".turn.assistant")).to_contain_text("Hi")
    expect(alert).to_have_count(0)
    assert [one["role"] for one in turns(out)] == ["user", "assistant"]


def test_after_the_end_of_the_session_the_typed_text_is_kept(
    talk: Talk, speaker: Speaker, serve_wizard: ServeWizard, stranger: Page, out: Device
) -> None:
    gateways.install(out.root, speaker.server.url, COMPLETIONS)
    wizard = serve_wizard(WIZARD_TOKEN=TOKEN)
    page = stranger
    page.goto(f"{wizard.url}/?token={TOKEN}")
    send(page, f"{wizard.url}/wizard/profile", {"profile": "box"})
    page.goto(f"{wizard.url}/chat")
    page.context.clear_cookies()
    say(page, "Hello?")
    expect(page.get_by_role("alert")).to_contain_text("Your session has ended")
    expect(field(page)).to_have_value("Hello?")
    expect_answer_finished(page)


def test_a_wizard_that_ends_during_an_answer_is_reported(
    talk: Talk, speaker: Speaker, stranger: Page, serve_wizard: ServeWizard
) -> None:
    wizard = talk(speaker.server.url)
    page = stranger
    page.goto(f"{wizard.url}/chat")
    say(page, "Tell me all")
    speaker.say("It began ")
    expect(page.locator(".turn.assistant .said")).to_have_text("It began")
    os.killpg(wizard.process.pid, signal.SIGKILL)
    expect(page.get_by_role("alert")).to_contain_text("The connection was lost before")
    expect(page.locator(".turn.assistant .stopped")).to_be_visible()
    expect(field(page)).to_have_value("")
    wizard.process.wait()
    serve_wizard(port=wizard.port)
    page.reload()
    expect(page.locator(".turn.user")).to_have_text(re.compile("Tell me all"))


def test_chat_06_two_tabs_are_one_conversation(
    talk: Talk, speaker: Speaker, open_page: OpenPage, out: Device
) -> None:
    one = open_page(f"{talk(speaker.server.url).url}/chat")
    other = one.context.new_page()
    other.goto(one.url)
    for page, word in ((one, "first"), (other, "second")):
        speaker.end(f"the {word} answer")
        say(page, word)
        expect(page.locator(".turn.assistant").last).to_contain_text(f"the {word} answer")
    expect(other.locator(".turn")).to_have_count(4)
    one.reload()
    expect(one.locator(".turn")).to_have_count(4)
    assert len(turns(out)) == 4


def test_one_message_is_sent_once(speaker: Speaker, page: Page, out: Device) -> None:
    page.get_by_role("button", name="Send", exact=True).click()
    expect(field(page)).to_be_focused()
    field(page).fill("once")
    page.evaluate(
        "() => { const f = document.getElementById('chat'); f.requestSubmit(); f.requestSubmit(); }"
    )
    page.keyboard.type("another")
    page.keyboard.press("Control+Enter")
    speaker.end("done")
    expect(page.locator(".turn.assistant")).to_contain_text("done")
    expect_answer_finished(page)
    expect(field(page)).to_have_value("another")
    assert speaker.asked() == ["once"]
    assert [one["content"] for one in turns(out)] == ["once", "done"]


def test_a_long_text_causes_a_warning_and_one_that_is_too_long_is_not_sent(
    speaker: Speaker, page: Page
) -> None:
    state = page.locator("#state")
    field(page).fill("x" * (27 << 10))
    expect(state).to_have_text("")
    field(page).fill("ä" * (15 << 10))
    expect(state).to_contain_text("30 of 32 KiB")
    say(page, "ä" * ((16 << 10) + 1))
    expect(state).to_contain_text("33 of 32 KiB")
    expect(page.locator(".turn")).to_have_count(0)
    assert speaker.asked() == []
    speaker.end("That is long")
    say(page, "ä" * (16 << 10))
    expect(page.locator(".turn.assistant")).to_contain_text("That is long")
    assert [len(text) for text in speaker.asked()] == [16 << 10]


def test_only_a_reader_at_the_end_follows_new_lines(
    talk: Talk, speaker: Speaker, open_page: OpenPage, out: Device
) -> None:
    put_turns(out, *chat_states.turns(8))
    page = open_page(f"{talk(speaker.server.url).url}/chat", phone=True)
    until(page, IN_VIEW)
    say(page, "And then?")
    speaker.say("word " * 400)
    expect(page.locator(".turn").last).to_contain_text("word word")
    until(page, "document.getElementById('end').getBoundingClientRect().top <= innerHeight")
    page.evaluate("scrollTo(0, 300)")
    speaker.end("end " * 200)
    expect_answer_finished(page)
    expect(page.locator("#latest")).to_contain_text("end end")
    assert page.evaluate("scrollY") == 300
    assert sideways_scroll(page) == []


def test_reload_and_back_show_the_conversation(
    talk: Talk, speaker: Speaker, open_page: OpenPage, out: Device
) -> None:
    put_turns(out, *chat_states.turns(6))
    url = talk(speaker.server.url).url
    page = open_page(f"{url}/chat")
    until(page, IN_VIEW)
    speaker.end("A new one")
    say(page, "And then?")
    expect(page.locator("#latest")).to_contain_text("A new one")
    expect_answer_finished(page)
    until(page, IN_VIEW)
    page.get_by_role("link", name="Back", exact=True).click()
    expect(page).to_have_url(re.compile("/wizard/"))
    page.go_back()
    expect(page.locator("#latest")).to_contain_text("A new one")
    expect(page.locator(".turn.user").last).to_contain_text("And then?")
    expect(field(page)).to_have_value("")
    page.reload()
    expect(page.locator("#latest")).to_contain_text("A new one")
    assert len(speaker.asked()) == 1
    page.goto(f"{url}/chat")
    until(page, IN_VIEW)


def watch_for_markup(page: Page) -> list[str]:
    """Record what the page does, in a list that stays empty if all text is harmless."""
    happened: list[str] = []

    page.expose_function("report", lambda what: happened.append(what))
    page.add_init_script(
        "addEventListener('securitypolicyviolation', event => report(event.violatedDirective))"
    )
    page.on("framenavigated", lambda frame: happened.append(frame.url))
    return happened


def test_chat_03_chat_04_and_http_14_text_from_the_history_is_shown_as_text(
    talk: Talk, open_page: OpenPage, out: Device
) -> None:
    url = talk(chat_states.NOBODY).url
    page = open_page("about:blank")
    happened = watch_for_markup(page)
    for start in range(0, len(XSS), 90):
        texts = XSS[start : start + 90]
        put_turns(
            out,
            *({"role": "user", "content": text} for text in texts),
            *({"role": "assistant", "content": text} for text in texts),
        )
        page.goto(f"{url}/chat")
        assert page.locator(".turn").count() == 2 * len(texts)
        odd = "main :is(img, svg, iframe, object, embed, style, link, meta, base, video, audio)"
        assert (
            page.locator(f"{odd}, script:not([src]), .said :is(form, input, button)").count() == 0
        )
    assert [what for what in happened if what != f"{url}/chat"] == []


def test_chat_03_chat_04_and_http_14_text_that_arrives_is_shown_as_text(
    talk: Talk, speaker: Speaker, open_page: OpenPage
) -> None:
    page = open_page("about:blank")
    happened = watch_for_markup(page)
    page.goto(f"{talk(speaker.server.url).url}/chat")
    for start in range(0, len(XSS), 30):
        text = "\n\n".join(XSS[start : start + 30])
        say(page, text)
        speaker.say(text)
        its = page.locator(".turn.assistant .said").last
        expect(its).to_contain_text(XSS[start][:6])
        assert its.locator("*").count() == 0
        speaker.end()
        expect_answer_finished(page)
        assert page.locator("main img, .said :is(script, iframe, form, svg)").count() == 0
    assert happened == [page.url]


def test_without_scripts_a_message_is_answered_too(
    talk: Talk, open_page: OpenPage, out: Device
) -> None:
    put_turns(out, *chat_states.turns())
    with stand_in() as url:
        served = talk(url).url
        page = open_page(f"{served}/chat", java_script_enabled=False, phone=True)
        expect(page.locator("#gateway")).to_contain_text("Ready")
        page.get_by_role("link", name="Latest message").click()
        expect(page.locator("#latest")).to_be_in_viewport()
        for hidden in ("Stop", "Cancel"):
            expect(page.get_by_role("button", name=hidden)).to_have_count(0)
        expect(page.get_by_text("Ctrl+Enter")).to_be_hidden()
        with page.expect_navigation():
            say(page, "hello")
        assert page.url == f"{served}/chat#latest"
        expect(page.locator("#latest")).to_contain_text("I am a stand-in")
        expect(page.locator("#latest .who")).to_be_in_viewport()
        expect(field(page)).to_have_value("")
        with page.expect_navigation():
            say(page, " ")
        expect(page.get_by_role("alert")).to_contain_text("Write a message first")
        expect(page.get_by_role("alert")).to_be_in_viewport()
    with page.expect_navigation():
        say(page, "still there?")
    expect(page.locator("#latest")).to_contain_text("No answer")
    expect(field(page)).to_have_value("still there?")
    page.get_by_role("link", name="Clear…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Clear the chat history?")
    page.get_by_role("button", name="Clear history").click()
    expect(page.get_by_role("status").first).to_contain_text("The history has been cleared.")
    expect(page.locator("#latest")).to_have_text("No messages yet.")


def test_n22_sending_stopping_and_clearing_only_need_the_keyboard(
    speaker: Speaker, page: Page
) -> None:
    tab_to(page, "#message")
    page.keyboard.type("first line")
    page.keyboard.press("Enter")
    page.keyboard.type("second line")
    page.keyboard.press("Control+Enter")
    wait_until(speaker.asked)
    assert speaker.asked() == ["first line\nsecond line"]
    speaker.say("It begins")
    expect(page.locator(".turn.assistant")).to_contain_text("It begins")
    tab_to(page, "#stop")
    page.keyboard.press("Enter")
    expect(field(page)).to_be_focused()
    expect_answer_finished(page)
    for _ in range(3):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.id") == "clear":
            break
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Clear the chat history?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator("#clear")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("The history has been cleared.")


@pytest.mark.parametrize(
    "phone",
    [pytest.param(True, id="phone"), pytest.param(False, id="desk")],
)
def test_n22_the_tab_key_reaches_everything_in_a_long_chat(
    phone: bool, talk: Talk, open_page: OpenPage, out: Device
) -> None:
    put_turns(out, *chat_states.turns(3))
    page = open_page(f"{talk(chat_states.NOBODY).url}/chat", phone=phone)
    for backwards in (False, True):
        page.reload()
        stops = focus_walk(page, backwards=backwards)
        assert [stop for stop in stops if stop.covered or not stop.visible] == []
        assert "pre" in {stop.element for stop in stops}


def test_on_a_phone_only_wide_elements_scroll_sideways(
    talk: Talk, speaker: Speaker, open_page: OpenPage
) -> None:
    page = open_page(f"{talk(speaker.server.url).url}/chat", phone=True)

    def faults() -> Iterator[str]:
        yield from (*sideways_scroll(page), *small_targets(page), *violations(page))
        page.emulate_media(color_scheme="dark")
        yield from violations(page, colours_alone=True)
        page.emulate_media(color_scheme="light")

    say(page, QUESTION)
    speaker.say(ANSWER)
    expect(page.locator(".turn.assistant .said")).to_contain_text("Quoted twice")
    assert list(faults()) == []
    speaker.end()
    expect_answer_finished(page)
    assert list(faults()) == []
    wide = "e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX === 'auto'"
    for box in (".said pre", ".said .scroll"):
        assert page.locator(box).first.evaluate(wide), box
    until(page, IN_VIEW)
    field(page).fill("line\n" * 100)
    composer = page.locator("#chat").bounding_box()
    assert composer is not None
    assert composer["height"] < 640 * 0.55
