"""The chat with real servers, lm-proxy and nginx, and the wizard under its real server."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dev.samples.gateway import Manner
from platform_common.secret import Secret
from tests.interop.conftest import Running
from tests.support import gateways
from tests.support.gateways import DONE, EVENTS, answering, delta, profile
from tests.support.key_servers import OpenAiProxy, openai_proxy
from tests.support.nginx import nginx
from tests.support.waiting import wait_until
from tests.support.web_servers import Served
from tests.support.wizard_visits import visitor_of
from wizard_app.chat.errors import GatewayError
from wizard_app.chat.gateway import ask, health
from wizard_app.chat.history import Turn

COMPLETIONS = 'protocol = "chat-completions"'
STREAM = {"Accept": "text/x-chat-stream"}
HELLO = [Turn("user", "hello"), Turn("assistant", "so"), Turn("user", "and ünïcode 😀?")]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAiProxy]:
    """A server with the protocol of OpenAI, whose model is the stand-in."""
    with (
        gateways.stand_in() as url,
        openai_proxy(tmp_path_factory.mktemp("proxy"), f"{url}/v1") as running,
    ):
        yield running


def base_of(proxy: OpenAiProxy) -> str:
    return proxy.endpoint.removesuffix("/v1")


@pytest.mark.long
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("chat", [f'{COMPLETIONS}\nmodel = "small"', 'model = "small"'])
def test_a_server_with_the_protocol_of_openai_answers(
    proxy: OpenAiProxy, chat: str, *, streaming: bool
) -> None:
    one = profile(base_of(proxy), chat)
    pieces = list(ask(one, HELLO, Secret(proxy.key), streaming=streaming))
    assert "and ünïcode 😀?" in "".join(pieces)
    if streaming and "completions" in chat:
        assert len(pieces) > 3


def refusal(url: str, chat: str, token: Secret | None = None, **more: Any) -> str:
    """The message of a gateway that gives no answer."""
    with pytest.raises(GatewayError) as raised:
        list(ask(profile(url, chat), HELLO, token, **more))
    return raised.value.message


@pytest.mark.long
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("key", "model", "reason"),
    [
        ("sk-wrong", "small", "rejects this device's token (HTTP 403)"),
        ("", "small", "rejects this device's token (HTTP 403)"),
        ("right", "unknown", "it returned HTTP 500"),
    ],
)
def test_refusals_are_reported(
    proxy: OpenAiProxy, key: str, model: str, reason: str, *, streaming: bool
) -> None:
    token = Secret(proxy.key if key == "right" else key) if key else None
    chat = f'{COMPLETIONS}\nmodel = "{model}"'
    message = refusal(base_of(proxy), chat, token, streaming=streaming)
    assert reason in message
    assert proxy.key not in message


@pytest.mark.long
@pytest.mark.parametrize("streaming", [False, True])
def test_a_model_that_the_gateway_cannot_reach_is_reported(
    tmp_path: Path, *, streaming: bool
) -> None:
    with openai_proxy(tmp_path) as proxy:
        chat, token = f'{COMPLETIONS}\nmodel = "small"', Secret(proxy.key)
        message = refusal(base_of(proxy), chat, token, streaming=streaming, limit_s=60)
    assert ("it says: " if streaming else "it returned HTTP 502: Error processing") in message


_NGINX = """
location /healthz { return 204; }
location = /chat { return 404; }
location = /busy/chat { return 503; }
location = /elsewhere/chat { return 301 /chat; }
location = /page/chat { default_type text/html; return 200 "<h1>Welcome</h1>"; }
location = /long/chat { client_max_body_size 8; proxy_pass UPSTREAM/chat; }
location = /gone/chat { proxy_pass http://127.0.0.1:9/; }
location = /late/chat { proxy_read_timeout 1s; proxy_pass SLOW/chat; }
location /v1/ { proxy_pass UPSTREAM; }
location = /plain { proxy_buffering off; proxy_pass UPSTREAM/v1/chat/completions; }
location = /packed { gzip on; gzip_types text/event-stream; gzip_min_length 0;
    proxy_pass UPSTREAM/v1/chat/completions; }
"""


@pytest.fixture(scope="module")
def web_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An nginx in front of the stand-in."""
    folder = tmp_path_factory.mktemp("nginx")
    with gateways.stand_in() as url, gateways.stand_in(Manner(slow_s=20)) as slow:
        lines = _NGINX.replace("UPSTREAM", url).replace("SLOW", slow)
        with nginx(folder, folder / "own", lines) as running:
            yield running.url


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/busy/chat", "it returned HTTP 503"),
        ("/elsewhere/chat", "it redirects elsewhere (HTTP 301)"),
        ("/page/chat", "answer is not a chat message"),
        ("/long/chat", "it returned HTTP 413"),
        ("/gone/chat", "it returned HTTP 502"),
        ("/late/chat", "it returned HTTP 504"),
    ],
)
def test_chat_02_the_message_of_a_web_server_is_shown(
    web_server: str, path: str, reason: str
) -> None:
    message = refusal(web_server, f'path = "{path}"')
    assert reason in message
    assert "<" not in message


@pytest.mark.parametrize("path", ["", "/plain", "/packed"])
def test_a_stream_passes_through_a_web_server(web_server: str, path: str) -> None:
    chat = f'{COMPLETIONS}\npath = "{path}"'
    pieces = list(ask(profile(web_server, chat), HELLO, None, streaming=True))
    assert "stand-in" in "".join(pieces)
    # There is no simple chat there, so chat completions are used.
    assert "stand-in" in "".join(ask(profile(web_server), HELLO, None))
    assert health(profile(web_server)).ready


Talking = Callable[..., contextlib.AbstractContextManager[Served]]


@pytest.fixture
def talking(running: Running, out: Path) -> Talking:
    """Run a served wizard whose profile has its gateway at a given address."""

    @contextlib.contextmanager
    def talking(url: str, chat: str = "") -> Iterator[Served]:
        gateways.install(out, url, chat)
        with running() as wizard:
            assert send(wizard, "/wizard/profile", profile="box")[0] == 302
            yield wizard
        assert "Traceback" not in wizard.log.read_text()

    return talking


def send(wizard: Served, path: str, **fields: str) -> tuple[int, str]:
    answer = visitor_of(wizard).ask(path, fields.items() or None)
    return answer.status, answer.body


def turns(tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "dev-out/home/agent/.box/chat-history.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def until_turns(tmp_path: Path, count: int) -> list[dict[str, Any]]:
    wait_until(lambda: len(turns(tmp_path)) >= count)
    return turns(tmp_path)


def ask_for_stream(connection: http.client.HTTPConnection, message: str) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = urllib.parse.urlencode({"message": message})
    connection.request("POST", "/chat/message", body, form | STREAM)


@contextlib.contextmanager
def streaming(wizard: Served, message: str) -> Iterator[http.client.HTTPResponse]:
    """The response to a message, while it is being sent."""
    connection = http.client.HTTPConnection("127.0.0.1", wizard.port, timeout=60)
    try:
        ask_for_stream(connection, message)
        yield connection.getresponse()
    finally:
        connection.close()


def test_a_connection_stays_open_after_a_streamed_answer(talking: Talking, tmp_path: Path) -> None:
    with gateways.stand_in() as url, talking(url, COMPLETIONS) as wizard:
        connection = http.client.HTTPConnection("127.0.0.1", wizard.port, timeout=60)
        with contextlib.closing(connection):
            for _ in range(3):
                ask_for_stream(connection, "hello")
                with connection.getresponse() as came:
                    assert "stand-in" in came.read().decode()
                used = connection.sock
                connection.request("GET", "/healthz")
                with connection.getresponse() as came:
                    assert came.read() == b"ok"
                assert connection.sock is used


def in_two_parts(heard: threading.Event) -> Callable[[object, socket.socket], None]:
    """A gateway that sends a second word once the first one has been received."""

    def answer(_: object, connection: socket.socket) -> None:
        connection.sendall(EVENTS + f"{delta('öne')}\n\n".encode())
        assert heard.wait(30)
        connection.sendall(f"{delta('two')}\n\n{DONE}".encode())

    return answer


@pytest.mark.parametrize("behind", ["nothing", "nginx"])
def test_an_answer_is_forwarded_immediately_even_through_a_web_server(
    talking: Talking, tmp_path: Path, behind: str
) -> None:
    heard = threading.Event()
    with contextlib.ExitStack() as running:
        server = running.enter_context(answering(in_two_parts(heard)))
        wizard = running.enter_context(talking(server.url, COMPLETIONS))
        if behind == "nginx":
            lines = f"location / {{ proxy_pass {wizard.url}; proxy_set_header Host $host; }}"
            front = running.enter_context(nginx(tmp_path, tmp_path / "nginx", lines))
            wizard = Served(front.url, wizard.process, wizard.log)
        came = running.enter_context(streaming(wizard, "hello"))
        # The status is sent before the first word.
        assert (came.status, came.headers["Transfer-Encoding"]) == (200, "chunked")
        assert came.read1().decode() == "öne"
        assert [said["role"] for said in turns(tmp_path)] == ["user"]
        heard.set()
        text, _, html = came.read().decode().partition("\x00")
    assert text == "two"
    assert "<p>önetwo</p>" in html


@pytest.mark.parametrize("said_something", [True, False])
def test_a_client_that_disconnects_ends_the_request_to_the_gateway(
    talking: Talking, tmp_path: Path, *, said_something: bool
) -> None:
    ended = threading.Event()

    def answer(_: object, connection: socket.socket) -> None:
        connection.sendall(EVENTS + (f"{delta('so far')}\n\n".encode() if said_something else b""))
        # Nothing more is sent, so no write to the disconnected client can fail.
        while connection.recv(100):
            pass
        ended.set()

    with (
        answering(answer) as server,
        talking(server.url, COMPLETIONS) as wizard,
    ):
        with streaming(wizard, "hello") as came:
            if said_something:
                assert came.read1() == b"so far"
        assert ended.wait(20)
        question, half = until_turns(tmp_path, 2)
        assert question["content"] == "hello"
        assert (half["content"], half["stopped"]) == ("so far" * said_something, True)
        assert "Stopped before the answer" in send(wizard, "/chat")[1]


def in_threads(count: int, do: Callable[[int], object]) -> list[threading.Thread]:
    """Start `count` threads, each of which calls `do` with its number."""
    threads = [threading.Thread(target=do, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.long
def test_other_pages_are_quick_while_all_slots_of_the_gateway_are_taken(
    talking: Talking, tmp_path: Path
) -> None:
    with gateways.stand_in(Manner(slow_s=12)) as url, talking(url) as wizard:
        threads = in_threads(8, lambda _: send(wizard, "/chat/message", message="x"))
        until_turns(tmp_path, 8)
        time.sleep(0.5)
        began = time.monotonic()
        for _ in range(20):
            status, html = send(wizard, "/chat/message", message="one too many")
            assert status == 200
            assert "messages are already being answered" in html
        assert send(wizard, "/chat")[0] == 200
        assert "Ready" in send(wizard, "/chat/gateway")[1]
        assert send(wizard, "/healthz") == (200, "ok")
        # Waiting for a slot would take longer than this.
        assert time.monotonic() - began < 10
        for thread in threads:
            thread.join(60)
        assert "stand-in" in send(wizard, "/chat/message", message="and now?")[1]
    found = turns(tmp_path)
    assert len(found) == 2 * 29
    assert sum(said.get("error", False) for said in found) == 20


@pytest.mark.long
def test_chat_06_sixty_four_simultaneous_people_leave_whole_lines_in_order(
    talking: Talking, tmp_path: Path
) -> None:
    failures: list[object] = []

    def one(wizard: Served, person: int) -> None:
        for number in range(5):
            found = send(wizard, "/chat/message", message=f"{person} {number}")
            if found[0] != 200:
                failures.append(found)

    with gateways.stand_in() as url, talking(url) as wizard:
        for thread in in_threads(64, partial(one, wizard)):
            thread.join(300)
    assert failures == []
    found = turns(tmp_path)
    assert len(found) == 64 * 5 * 2
    asked = [said["content"] for said in found if said["role"] == "user"]
    assert len(set(asked)) == 64 * 5
    for person in range(64):
        mine = [text for text in asked if text.startswith(f"{person} ")]
        assert mine == [f"{person} {number}" for number in range(5)]
    # An answer comes after its question.
    for number, said in enumerate(found):
        if said["role"] == "assistant" and not said.get("error"):
            question = said["content"].split("> ")[1].split("\n")[0]
            assert any(one["content"] == question for one in found[:number])


@pytest.mark.long
def test_chat_05_a_page_of_a_very_long_history_is_quick(talking: Talking, tmp_path: Path) -> None:
    path = tmp_path / "dev-out/home/agent/.box/chat-history.jsonl"
    path.parent.mkdir(parents=True)
    pair = [
        {"role": "user", "content": "What is it?", "at": "2026-01-01T00:00:00Z"},
        {"role": "assistant", "content": "*It* is `so`.\n\n- one\n- two\n" * 8},
    ]
    lines = "".join(f"{json.dumps(said)}\n" for said in pair).encode()
    with path.open("wb") as file:
        for _ in range((100 << 20) // (len(lines) * 1000) + 1):
            file.write(lines * 1000)
    assert path.stat().st_size > 100 << 20
    with gateways.stand_in() as url, talking(url) as wizard:
        times = []
        for _ in range(30):
            began = time.monotonic()
            status, html = send(wizard, "/chat")
            times.append(time.monotonic() - began)
            assert (status, html.count("<article")) == (200, 200)
        # On an idle machine it takes a tenth of a second.
        assert sorted(times)[len(times) // 2] < 1
