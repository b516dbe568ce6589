"""The pages of the chat: a message and its answer in each of the three ways, and failures."""

from __future__ import annotations

import json
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import html5lib
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support import gateways
from tests.support.gateways import DONE, EVENTS, answering, completion, delta, events, reply
from tests.support.hostile_text import XSS
from tests.support.http_tables import addresses
from tests.support.markup import parse_errors
from tests.support.odd_files import make
from tests.support.raw_server import Answer, response
from tests.wizard_app.conftest import MakeWizard
from wizard_app.chat.conversation import MOST_AT_ONCE
from wizard_app.chat.routes import LONGEST_BYTES

STREAM = {"Accept": "text/x-chat-stream"}
COMPLETIONS = 'protocol = "chat-completions"'
MakeTalk = Callable[..., FlaskClient]


@pytest.fixture
def history(out: Path) -> Path:
    return out / "home/agent/.box/chat-history.jsonl"


@pytest.fixture
def talk(wizard: MakeWizard, out: Path) -> MakeTalk:
    """Make a client of a wizard whose profile has its gateway at a given address."""

    def make_client(url: str, chat: str = "", **environment: str) -> FlaskClient:
        gateways.install(out, url, chat)
        client = wizard(**environment)
        answer = client.post("/wizard/profile", data={"profile": "box"})
        assert answer.status_code == 302
        return client

    return make_client


@pytest.fixture
def client(talk: MakeTalk) -> Iterator[FlaskClient]:
    """A client of a wizard whose gateway is the stand-in."""
    with gateways.stand_in() as url:
        yield talk(url)


def turns(history: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in history.read_bytes().splitlines()]


def roles(history: Path) -> list[str]:
    return [turn["role"] for turn in turns(history)]


def send(
    client: FlaskClient,
    message: str | bytes,
    *,
    headers: dict[str, str] | None = None,
    buffered: bool = True,
    **fields: str,
) -> TestResponse:
    form = {"message": message, **fields}
    return client.post("/chat/message", data=form, headers=headers, buffered=buffered)


def stream(client: FlaskClient, message: str, *, buffered: bool = True) -> TestResponse:
    return send(client, message, headers=STREAM, buffered=buffered)


def routes(client: FlaskClient) -> dict[str, set[str]]:
    """The addresses of the chat, and their methods."""
    found = addresses(client.application, ["system"])
    return {path: methods for path, methods in found.items() if path.startswith("/chat")}


def articles(html: str) -> list[str]:
    return re.findall(r'<article class="turn (\w+)"', html)


def test_before_a_profile_is_chosen_the_chat_says_that_one_is_needed(
    wizard: MakeWizard, out: Path
) -> None:
    client = wizard()
    page = client.get("/chat")
    assert page.status_code == 200
    assert "No profile has been chosen yet" in page.text
    assert '<a href="/wizard/profile">' in page.text
    assert "<textarea" not in page.text
    assert "No gateway" in client.get("/chat/gateway").text
    answer = send(client, "hello?")
    assert answer.status_code == 200
    assert articles(answer.text) == ["user", "failed"]
    assert roles(out / "var/lib/platform/chat-history.jsonl") == ["user", "assistant"]


def test_the_response_to_a_message_is_the_new_messages(client: FlaskClient, history: Path) -> None:
    answer = send(client, "hello <b>you</b>\r\nthere")
    assert (answer.status_code, answer.content_type) == (200, "text/html; charset=utf-8")
    assert "<html" not in answer.text
    assert articles(answer.text) == ["user", "assistant"]
    assert "<p>hello &lt;b&gt;you&lt;/b&gt;<br>\nthere</p>" in answer.text
    question, said = turns(history)
    assert question["content"] == "hello <b>you</b>\nthere"
    assert "stand-in" in said["content"]
    assert "error" not in said
    page = client.get("/chat").text
    assert page.count('id="latest"') == 1
    assert articles(page) == ["user", "assistant"]
    assert re.search(r'<time [^>]*datetime="20[^"]+"', page)
    # The state of the gateway is a part of a page.
    found = client.get("/chat/gateway").text
    assert "<html" not in found
    assert "Box is ready" in found
    assert "data-ready" in found


@pytest.mark.parametrize("chat", ["", COMPLETIONS])
def test_an_answer_is_streamed_as_text_and_then_as_html(
    talk: MakeTalk, history: Path, chat: str
) -> None:
    with gateways.stand_in() as url:
        client = talk(url, chat)
        answer = stream(client, "hello")
    assert (answer.status_code, answer.content_type) == (200, "text/plain; charset=utf-8")
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert answer.headers["Cache-Control"] == "no-store"
    text, html = answer.text.split("\x00")
    assert text == turns(history)[1]["content"]
    assert articles(html) == ["user", "assistant"]


def test_text_is_forwarded_as_soon_as_the_gateway_sends_it(talk: MakeTalk) -> None:
    heard = threading.Event()

    def answer(_: object, connection: Any) -> None:
        connection.sendall(events(delta("one\x00 ")))
        assert heard.wait(120)
        connection.sendall(f"{delta('two')}\n\n{DONE}".encode())

    with answering(answer) as server:
        client = talk(server.url, COMPLETIONS)
        came = stream(client, "hello", buffered=False)
        parts = (part.decode() for part in came.iter_encoded() if part)
        assert next(parts) == "one "
        heard.set()
        assert next(parts) == "two"
        assert next(parts) == "\x00"
        assert "<p>one two</p>" in next(parts)


def test_only_a_client_that_accepts_a_stream_gets_one(client: FlaskClient) -> None:
    for kind in ("", "*/*", "text/html", "text/x-chat-stream;q=0, */*"):
        answer = send(client, "hello", headers={"Accept": kind})
        assert answer.content_type == "text/html; charset=utf-8"
    assert send(client, "hello", nojs="1", headers=STREAM).status_code == 303


@pytest.mark.parametrize("headers", [{}, STREAM], ids=["part", "stream"])
def test_chat_02_a_failure_is_stored_as_one_turn_and_the_question_once(
    talk: MakeTalk, history: Path, headers: dict[str, str]
) -> None:
    moved = response(status="302 Go", headers={"Location": "http://evil.example/"})
    for answer in (
        *(response(status="500 Oh"), response(b"<h1>Hello</h1>"), response(b"{"), moved),
        *(response(b"x" * (2 << 20)), b"", None),
    ):
        history.unlink(missing_ok=True)
        with answering(answer or b"") as server:
            client = talk(server.url if answer is not None else "http://127.0.0.1:9")
            came = send(client, "hello", headers=headers)
        assert came.status_code == 200
        assert answer is not None or "refused the connection" in came.text
        html = came.text.rpartition("\x00")[2]
        assert articles(html) == ["user", "failed"]
        question, failure = turns(history)
        assert question["content"] == "hello"
        assert (failure["role"], failure["error"]) == ("assistant", True)
        assert failure["content"].startswith("Box gave no usable answer: ")
        assert "No answer</strong>" in html
    assert "Not answering yet" in client.get("/chat/gateway").text
    assert client.get("/chat").status_code == 200


def test_the_part_before_a_failure_is_kept_and_marked_as_stopped(
    talk: MakeTalk, history: Path
) -> None:
    with answering(events(delta("half of it"))) as server:
        client = talk(server.url, COMPLETIONS)
        came = stream(client, "hello")
    text, html = came.text.split("\x00")
    assert text == "half of it"
    _, half, failure = turns(history)
    assert (half["content"], half["stopped"]) == ("half of it", True)
    assert failure["error"] is True
    assert "Stopped before the answer was complete" in html


def test_failures_and_empty_turns_are_not_sent_to_the_gateway(
    talk: MakeTalk, history: Path
) -> None:
    with answering(response(status="500 Oh"), completion("two"), completion("three")) as server:
        client = talk(server.url, COMPLETIONS)
        for message in ("one", "two?", "three?"):
            send(client, message)
    sent = json.loads(server.requests[-1].body)["messages"]
    assert [one["content"] for one in sent] == ["one", "two?", "two", "three?"]
    assert len(turns(history)) == 6


def test_the_token_of_a_gateway_is_sent_but_never_shown(
    talk: MakeTalk, out: Path, history: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = "canary.0123456789.canary"
    (out / "etc/platform").mkdir(parents=True)
    (out / "etc/platform/secrets.env").write_text(f"BOX_TOKEN={token}\n")
    refused = response(json.dumps({"error": f"bad token {token}"}).encode(), status="400 No")
    with answering(reply("hi"), refused) as server:
        client = talk(server.url, 'token_env = "BOX_TOKEN"')
        pages = [send(client, "one").text, send(client, "two").text, client.get("/chat").text]
    for request in server.requests:
        # The health check is sent without it.
        given = f"Bearer {token}" if request.body else None
        assert request.headers.get("authorization") == given
    assert "bad token •••" in pages[-1]
    assert not any(token in text for text in (*pages, history.read_text(), caplog.text))


def test_without_readable_keys_no_token_is_sent(talk: MakeTalk, out: Path) -> None:
    (out / "etc/platform").mkdir(parents=True)
    make("folder", out / "etc/platform/secrets.env")
    with answering(response(status="401 No")) as server:
        client = talk(server.url, 'token_env = "BOX_TOKEN"')
        assert "Check BOX_TOKEN in secrets.env" in send(client, "one").text
    assert "authorization" not in server.requests[0].headers


def test_chat_01_a_profile_edited_to_lead_elsewhere_is_refused(talk: MakeTalk, out: Path) -> None:
    client = talk("http://127.0.0.1:9")
    for url in (
        *("http://192.168.1.5:8080", "http://evil.example", "http://127.0.0.1@evil.example"),
        *("http://169.254.169.254", "http://localhost.evil.example"),
    ):
        gateways.install(out, url)
        assert "cannot be used" in client.get("/chat").text
        answer = send(client, "hello")
        assert articles(answer.text)[-2:] == ["user", "failed"]
        assert "must" in answer.text
        assert "No gateway" in client.get("/chat/gateway").text


_BRACES = "{{7*7}}{% raw %}{{config}}{# #}"
_MESSAGES: dict[str, str | bytes] = {
    "markdown link": "[x](javascript:alert(1))",
    "ANSI": "\x1b[31mred\x1b[0m\x07",
    "NUL": "a\x00b",
    "lone surrogate": b"\xed\xa0\x80",
    "not UTF-8": b"\xff\xfe\xc3",
    "another encoding": "ö".encode("utf-16"),
    "right to left": "\u202eevil",
    "byte-order mark": "\ufeffx",
    "separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "joiners": "👩‍👩‍👧‍👦" * 100,
    "combining": "Z" + "\u0301" * 5000,
    "one long word": "x" * LONGEST_BYTES,
    "many lines": "a\n" * 2_000,
    "braces": _BRACES,
    "JSON": '{"role":"assistant","content":"x"}\n{"role":"user"}',
    "quotes": "\"'`\\",
    "percent": "%s%n%00%0d%0a",
    "noncharacters": "a\ufffe\uffff\U0010ffff",
}


@pytest.mark.parametrize("message", _MESSAGES.values(), ids=_MESSAGES)
def test_chat_03_and_http_15_any_message_is_harmless(
    client: FlaskClient, history: Path, message: str | bytes
) -> None:
    for headers in ({}, STREAM):
        answer = send(client, message, headers=headers)
        assert answer.status_code == 200
        text, _, html = answer.text.rpartition("\x00")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text + html)
        html5lib.HTMLParser(strict=True).parseFragment(html)
        assert message != _BRACES or html.count(_BRACES) >= 2
    assert roles(history) == ["user", "assistant"] * 2
    assert parse_errors(client.get("/chat").text) == []
    for kind in ("md", "jsonl"):
        assert client.get(f"/chat/export.{kind}").status_code == 200


@pytest.mark.parametrize("start", range(0, len(XSS), 40))
def test_chat_03_chat_04_and_http_14_a_turn_is_shown_as_text_only(
    talk: MakeTalk, history: Path, start: int
) -> None:
    gathered = "\n\n".join(XSS[start : start + 40])
    with answering(reply(gathered)) as server:
        client = talk(server.url)
        part = send(client, gathered).text
    page = client.get("/chat").text
    assert parse_errors(page) == []
    for html in (part, page):
        root = html5lib.parse(html, namespaceHTMLElements=False)
        shown = [one for one in root.iter("div") if one.attrib.get("class") == "said"]
        assert len(shown) == 2
        for element in (one for body in shown for one in body.iter() if one is not body):
            assert element.tag not in ("script", "img", "svg", "iframe", "style", "form", "input")
            assert not any(name.startswith(("on", "style", "src")) for name in element.attrib)
            assert re.match(r"https?:|mailto:|$", element.attrib.get("href", ""))


def test_chat_03_a_message_can_have_at_most_32_kib(client: FlaskClient, history: Path) -> None:
    assert send(client, "x" * LONGEST_BYTES).status_code == 200
    for message in ("x" * (LONGEST_BYTES + 1), "é" * (LONGEST_BYTES // 2 + 1), "x" * (1 << 20)):
        for headers in ({}, STREAM):
            answer = send(client, message, headers=headers)
            assert answer.status_code == 413
            assert answer.content_type == "text/html; charset=utf-8"
            assert "A message can be up to 32 KiB" in answer.text
            assert articles(answer.text) == ["user", "assistant"]
    assert len(turns(history)) == 2


def test_chat_03_an_empty_message_is_not_sent(client: FlaskClient, history: Path) -> None:
    for message in ("", " \r\n\t ", "\x00", "\x1b\x07\n"):
        for headers in ({}, STREAM):
            answer = send(client, message, headers=headers)
            assert answer.status_code == 200
            assert "Write a message first" in answer.text
    assert "Write a message first" in client.post("/chat/message").text
    assert not history.exists()


def test_without_javascript_the_page_shows_the_typed_text_again(client: FlaskClient) -> None:
    assert 'name="nojs" value="1"' in client.get("/chat").text
    answer = send(client, "hello", nojs="1")
    assert (answer.status_code, answer.location) == (303, "/chat#latest")
    assert articles(client.get("/chat").text) == ["user", "assistant"]
    too_long = "<b>" + "x" * LONGEST_BYTES
    answer = send(client, too_long, nojs="1")
    assert answer.status_code == 413
    assert "&lt;b&gt;xxx" in answer.text
    assert 'aria-describedby="message-error"' in answer.text
    assert parse_errors(answer.text) == []
    assert "<title>Error: Chat" in send(client, "", nojs="1").text


def test_chat_06_at_most_eight_messages_are_answered_at_once(talk: MakeTalk, history: Path) -> None:
    asked, go_on = threading.Semaphore(0), threading.Event()

    def answer(_: object, connection: Any) -> None:
        asked.release()
        assert go_on.wait(120)
        connection.sendall(reply("so"))

    with answering(answer) as server, ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        client = talk(server.url)
        others = [client.application.test_client() for _ in range(MOST_AT_ONCE)]
        sent = [pool.submit(send, other, "one of many") for other in others]
        try:
            assert all(asked.acquire(timeout=120) for _ in sent)
            refused = send(client, "one too many").text
            # If this message had waited, the others would have been answered first.
            assert not any(one.done() for one in sent)
        finally:
            go_on.set()
        assert [one.result(120).status_code for one in sent] == [200] * MOST_AT_ONCE
        assert "8 messages are already being answered. Send yours again" in refused
        assert "<p>so</p>" in send(client, "and now?").text
    said = turns(history)
    assert len(said) == 2 * MOST_AT_ONCE + 4
    assert [turn["content"] for turn in said if turn.get("error")] == [
        "8 messages are already being answered. Send yours again in a moment."
    ]


def test_chat_06_every_outcome_of_a_message_frees_its_place(talk: MakeTalk) -> None:
    def broken(_: object, connection: Any) -> None:
        connection.sendall(events(delta("a")))

    answers: list[bytes | Answer] = [response(status="500 Oh"), b"", broken]
    with answering(*answers * MOST_AT_ONCE, completion("at last")) as server:
        client = talk(server.url, COMPLETIONS)
        for number in range(len(answers) * MOST_AT_ONCE):
            came = stream(client, "x", buffered=False)
            if number % 3:
                # A client that disconnects without reading anything.
                came.close()
            else:
                assert came.text
        while len(server.requests) < len(answers) * MOST_AT_ONCE:
            send(client, "x")
        assert "<p>at last</p>" in send(client, "x").text


def test_a_client_that_disconnects_ends_the_request_and_the_received_part_is_kept(
    talk: MakeTalk, history: Path
) -> None:
    ended = threading.Event()

    def answer(_: object, connection: Any) -> None:
        connection.sendall(EVENTS + f"{delta('so far')}\n\n".encode())
        while connection.recv(100):
            pass
        ended.set()

    with answering(answer) as server:
        client = talk(server.url, COMPLETIONS)
        came = stream(client, "hi", buffered=False)
        parts = (part for part in came.iter_encoded() if part)
        assert next(parts) == b"so far"
        came.close()
        assert ended.wait(120)
    _, half = turns(history)
    assert (half["content"], half["stopped"]) == ("so far", True)


def test_chat_07_a_turn_that_could_not_be_saved_has_a_notice(
    client: FlaskClient, history: Path
) -> None:
    send(client, "saved")
    history.unlink()
    make("folder", history)
    for answer in (send(client, "lost?"), send(client, "lost?", nojs="1")):
        assert answer.status_code == 200
        assert articles(answer.text) == ["user", "assistant"]
        assert "This could not be saved" in answer.text
        assert "lost?" in answer.text
        assert "is not a regular file" in answer.text
    page = client.get("/chat")
    assert page.status_code == 200
    assert "The history cannot be read" in page.text
    assert client.get("/chat/export.md").location == "/chat"
    assert "The history cannot be read" in client.get("/chat").text
    assert "could not be cleared" in client.post("/chat/clear").text


def test_chat_08_history_and_pages_are_private(
    client: FlaskClient, history: Path, state_file: Path
) -> None:
    answer = send(client, "secret words")
    assert stat.S_IMODE(history.stat().st_mode) == 0o640
    assert "secret words" not in state_file.read_text()
    for found in (answer, *(client.get(path) for path in routes(client))):
        assert found.headers["Cache-Control"] == "no-store"


def test_the_history_is_exported_or_cleared_on_demand(client: FlaskClient, history: Path) -> None:
    send(client, "héllo")
    # The export is a download.
    lines, text = client.get("/chat/export.jsonl"), client.get("/chat/export.md")
    assert (lines.data, lines.content_type) == (history.read_bytes(), "application/x-ndjson")
    assert "\n\nhéllo\n\n## Assistant, " in text.text
    for answer in (lines, text):
        assert answer.headers["Content-Disposition"].startswith('attachment; filename="chat-')
    asked = client.get("/chat/clear").text
    assert "permanently deletes all messages and answers from this device" in asked
    assert '<form method="post" action="/chat/clear">' in asked
    assert history.exists()
    cleared = client.post("/chat/clear")
    assert (cleared.status_code, cleared.location) == (302, "/chat")
    assert not history.exists()
    page = client.get("/chat").text
    assert "The history has been cleared." in page
    assert articles(page) == []
    assert client.post("/chat/clear").status_code == 302


def test_the_chat_is_available_after_setup(
    client: FlaskClient, wizard: MakeWizard, state_file: Path
) -> None:
    state = json.loads(state_file.read_text())
    state_file.write_text(json.dumps(state | {"step": "done"}))
    later = wizard()
    assert later.get("/wizard/profile").location == "/wizard/done"
    assert "stand-in" in send(later, "hello").text
    assert '<a class="back" href="/wizard/done">' in later.get("/chat").text


def test_chat_05_a_page_of_a_long_history_is_quick(client: FlaskClient, history: Path) -> None:
    send(client, "hello")
    text = "Some *words* of `an answer`.\n\n- one\n- two\n" * 8
    with history.open("ab") as file:
        for number in range(5_000):
            turn = {"role": ("user", "assistant")[number % 2], "content": text}
            file.write(json.dumps(turn).encode() + b"\n")
    began = time.process_time()
    page = client.get("/chat")
    assert time.process_time() - began < 10
    assert len(articles(page.text)) == 200
