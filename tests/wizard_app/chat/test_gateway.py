"""Requests to a gateway: both protocols, streams cut anywhere, and every failure."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Iterator

import msgspec
import pytest

from dev.samples.gateway import Manner
from platform_common.errors import PlatformError
from platform_common.formats.decode import DecodingError
from platform_common.net.errors import ClientGoneError
from platform_common.records.profiles import Profile
from platform_common.secret import Secret
from tests.support.gateways import (
    DONE,
    EVENTS,
    answering,
    completion,
    delta,
    events,
    profile,
    reply,
    said,
    stand_in,
)
from tests.support.raw_server import Request, response
from wizard_app.chat.errors import GatewayError
from wizard_app.chat.event_stream import streamed
from wizard_app.chat.gateway import LIMIT_BYTES, ask, health
from wizard_app.chat.history import Turn

COMPLETIONS = 'protocol = "chat-completions"'
BOTH_WAYS = [*itertools.product(("", COMPLETIONS), (False, True))]
HELLO = [Turn("user", "hello")]
KEY = "sk-canary-0123456789abcdef"


def answer_of(one: Profile, *, streaming: bool = False, limit_s: float = 10) -> str:
    return "".join(ask(one, HELLO, None, streaming=streaming, limit_s=limit_s))


def failure_of(one: Profile, *, streaming: bool = False, limit_s: float = 10) -> str:
    with pytest.raises(GatewayError) as raised:
        answer_of(one, streaming=streaming, limit_s=limit_s)
    assert raised.value.hint
    return raised.value.message


def until_failure(pieces: Iterator[str]) -> tuple[list[str], str]:
    """The received pieces, and the message of the error that ended them."""
    came: list[str] = []
    try:
        came.extend(pieces)
    except GatewayError as error:
        return came, error.message
    raise AssertionError("the answer is complete")


def test_the_simple_protocol_only_sends_the_message() -> None:
    with answering(reply("hi")) as server:
        turns = [Turn("user", "before"), Turn("assistant", "so"), Turn("user", "now ü")]
        assert list(ask(profile(server.url), turns, None)) == ["hi"]
    (asked,) = server.requests
    assert asked.path == "/chat"
    assert asked.headers["content-type"] == "application/json"
    assert "authorization" not in asked.headers
    assert json.loads(asked.body) == {"message": "now ü"}


@pytest.mark.parametrize("streaming", [False, True])
def test_the_other_protocol_sends_the_last_twenty_turns(*, streaming: bool) -> None:
    turns = [Turn(("assistant", "user")[number % 2], str(number)) for number in range(30)]
    chat = f'{COMPLETIONS}\nmodel = "large"\npath = "/v2/talk?x=1"'
    with answering(completion("hi")) as server:
        found = ask(profile(server.url, chat), turns, Secret(KEY), streaming=streaming)
        assert list(found) == ["hi"]
    (asked,) = server.requests
    assert asked.path == "/v2/talk?x=1"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    messages = [{"role": turn.role, "content": turn.content} for turn in turns[10:]]
    expected = {"model": "large", "messages": messages, "stream": streaming}
    assert json.loads(asked.body) == expected


def test_a_gateway_without_the_simple_protocol_is_sent_chat_completions() -> None:
    with stand_in(Manner(only="chat-completions", pause_s=0)) as url:
        assert "/v1/chat/completions" in answer_of(profile(url))
    with answering(response(status="404 Not Found"), completion("hi")) as server:
        assert answer_of(profile(server.url)) == "hi"
    assert server.paths == ["/chat", "/v1/chat/completions"]
    assert json.loads(server.requests[1].body)["model"] == "box"
    # For a profile with chat completions there is no other attempt.
    with stand_in(Manner(only="simple", pause_s=0)) as url:
        assert "no chat at /v1/chat/completions (HTTP 404)" in failure_of(profile(url, COMPLETIONS))


def test_chat_01_addresses_of_other_devices_are_refused() -> None:
    for url in (
        *("http://192.168.1.5:8080/healthz", "http://evil.example/healthz", "file:///etc/passwd"),
        *("http://127.0.0.1@evil.example/", "http://localhost.evil.example/", ""),
        *("http://0.0.0.0:8080/", "http://[::ffff:10.0.0.1]/", "http://2130706433/"),
    ):
        if url:
            with pytest.raises(DecodingError):
                profile(url.removesuffix("/healthz"))
        # Even without the check of the file, nothing would be sent.
        one = msgspec.structs.replace(profile("http://127.0.0.1:9"), http_check=url)
        assert not health(one).ready
        with pytest.raises(PlatformError, match="http_check in its profile must "):
            answer_of(one)


def test_chat_01_a_host_name_that_resolves_elsewhere_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def elsewhere(*_: object, **__: object) -> list[object]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        return [(*kind, ("127.0.0.1", 9)), (*kind, ("192.0.2.7", 9))]

    monkeypatch.setattr(socket, "getaddrinfo", elsewhere)
    one = profile("http://localhost:9")
    assert "localhost leads to 192.0.2.7, which is not this device" in failure_of(one)
    assert "which is not this device" in str(health(one).said)


def test_chat_01_our_own_pages_are_refused_as_a_gateway() -> None:
    assert "one of this device's own web pages" in failure_of(profile("http://127.0.0.1:8088"))


_HTML = response(b"<h1>Hello</h1>", headers={"Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        *((response(status=f"{one} Oh"), f"it returned HTTP {one}") for one in (500, 503)),
        (response(status="302 Go", headers={"Location": "http://a.b/"}), "redirects elsewhere"),
        (
            response(status="307 Go", headers={"Location": "/chat"}),
            "redirects elsewhere (HTTP 307)",
        ),
        *((response(status=f"{one} No"), f"device's token (HTTP {one})") for one in (401, 403)),
        *((response(status=f"{one} No"), "has no chat at ") for one in (404, 405)),
        (_HTML, "answer is not a chat message"),
        *(
            (response(body), "answer is not a chat message")
            for body in (b"{", b'{"reply": 1, "choices": []}', b"[" * 100_000, b"\xff")
        ),
        (response(b'{"reply": "", "choices": [{"message": {"content": null}}]}'), "empty"),
        (response(b'{"reply": " ", "choices": [{"message": {"content": "\\u0000"}}]}'), "empty"),
        (response(b"{}", length=10), "closed the connection before"),
        (response(b"x" * (LIMIT_BYTES + 1)), "longer than 1 MiB"),
        (response(b"{}", headers={"Content-Encoding": "gzip"}), "compressed"),
        (b"SSH-2.0-OpenSSH\r\n", "sent an answer that is not HTTP"),
        (b"", "closed the connection before"),
        (said({"error": {"message": "no model"}}), "it says: no model"),
        (said({"error": "overloaded"}), "it says: overloaded"),
    ],
)  # fmt: skip
def test_chat_02_every_failure_is_reported_in_one_sentence(answer: bytes, reason: str) -> None:
    for chat, streaming in BOTH_WAYS:
        with answering(answer) as server:
            message = failure_of(profile(server.url, chat), streaming=streaming)
        assert message.startswith("Box gave no usable answer: ")
        assert reason in message
        assert "\n" not in message


def test_chat_02_the_text_of_a_refusal_is_shortened() -> None:
    body = {"error": {"message": "the model\n\x1b[31mis " + "x" * 10_000, "type": "y"}}
    refused = response(json.dumps(body).encode(), status="400 Bad Request")
    with answering(refused) as server:
        message = failure_of(profile(server.url))
    assert "HTTP 400: the model [31mis xxx" in message
    assert len(message) < 500


def test_chat_02_an_endless_answer_is_cut_off_at_its_limit() -> None:
    def endless(_: Request, connection: socket.socket) -> None:
        connection.sendall(EVENTS)
        while True:
            connection.sendall(b"data: " + b"x" * 65536)

    with answering(endless) as server:
        assert "longer than 1 MiB" in failure_of(profile(server.url, COMPLETIONS), streaming=True)


@pytest.mark.parametrize("streaming", [False, True])
def test_chat_02_the_whole_answer_has_a_time_limit(*, streaming: bool) -> None:
    began = time.monotonic()
    with stand_in(Manner(slow_s=30)) as url, pytest.raises(GatewayError, match="within 1 s"):
        list(ask(profile(url, COMPLETIONS), HELLO, None, streaming=streaming, limit_s=1))
    assert time.monotonic() - began < 25


def test_chat_02_an_answer_that_trickles_in_forever_is_cut_off() -> None:
    def drip(_: Request, connection: socket.socket) -> None:
        connection.sendall(EVENTS)
        while not server.stopping.wait(0.05):
            connection.sendall(f"{delta('x')}\n\n".encode())

    with answering(drip) as server:
        pieces = ask(profile(server.url, COMPLETIONS), HELLO, None, streaming=True, limit_s=1)
        came, message = until_failure(pieces)
    assert "within 1 s" in message
    assert len(came) > 1


CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
STREAM = (
    "\ufeff: a comment\n\n"
    f"event: message\nid: 7\n{delta('Hé')}\n\n"
    f"{delta('')}\r\n\r\n"
    f"retry: 10\r\r{delta(None)}\r\r"
    'data: {"choices": []}\n\n'
    'data: {"choices":\ndata: [{"delta": {"content": "llo"}}]}\n\n'
    'data:{"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n'
    'data:{"choices":[{"delta":{"content":"\\ude00"}}]}\n\n'
    f"{delta([{'type': 'text', 'text': '!'}, {'type': 'image'}], 'stop')}\n\n"
    'data: {"choices": [], "usage": {}}\n\n'
    "data: [DONE]\n\n"
    "data: what comes behind is nothing\n\n"
).encode()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_stream_is_understood_wherever_it_is_cut(*, chunked: bool) -> None:
    for size in (1, 2, 3, 7, 64, 10_000):
        parts = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]

        def answer(_: Request, connection: socket.socket, parts: list[bytes] = parts) -> None:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(CHUNKED if chunked else EVENTS)
            for part in parts:
                connection.sendall(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            if chunked:
                connection.sendall(b"0\r\n\r\n")

        with answering(answer) as server:
            assert answer_of(profile(server.url, COMPLETIONS), streaming=True) == "Héllo😀!"
        assert list(streamed(parts, lambda: None)) == ["Hé", "llo", "😀", "!"]


def test_chat_02_a_failing_stream_gives_the_part_so_far_and_the_reason() -> None:
    for came, parts, reason in (
        ("a", [], "its answer ended before it was complete"),
        ("", [], "its answer ended before it was complete"),
        ("", [": nothing", "data: [DONE]"], "its answer is empty"),
        ("a", ['data: {"error": {"message": "model died"}}'], "it says: model died"),
        ("a", ['data: {"error": "x", "choices": [{"finish_reason": "error"}]}'], "says: x"),
        ("a", ['data: {"error": {"code": 1}}'], "it reports an error"),
        ("a", ["data: {"], "not a chat message"),
        ("a", ["data: " + "[" * 100_000], "not a chat message"),
        ("", [delta(7)], "not a chat message"),
    ):
        with answering(events(*([delta(came)] if came else []), *parts)) as server:
            pieces = ask(profile(server.url, COMPLETIONS), HELLO, None, streaming=True)
            found, message = until_failure(pieces)
        assert "".join(found) == came, reason
        assert reason in message


def test_data_after_the_end_of_an_answer_is_ignored_without_waiting() -> None:
    whole = events(delta("all", "stop"))

    def stays_open(_: Request, connection: socket.socket) -> None:
        connection.sendall(whole)
        connection.recv(1)

    late = whole + b'data: {"error": "late"}\n\n'
    began = time.monotonic()
    for answer in (whole, whole + b"data: {\n\n", late, stays_open):
        with answering(answer) as server:
            assert answer_of(profile(server.url, COMPLETIONS), streaming=True, limit_s=60) == "all"
    assert time.monotonic() - began < 50


def test_a_gateway_may_answer_in_the_other_form() -> None:
    for answer in (
        completion("whole"),
        completion([{"type": "text", "text": "who"}, {"type": "text", "text": "le"}]),
        # A stream that the server labels as something else.
        response(f"{delta('whole')}\n\n{DONE}".encode(), headers={"Content-Type": "text/plain"}),
    ):
        with answering(answer) as server:
            for streaming in (True, False):
                assert answer_of(profile(server.url, COMPLETIONS), streaming=streaming) == "whole"


def test_chat_03_control_characters_are_removed_from_an_answer() -> None:
    odd = "a\x00b\x1b[1mc\r\nd\te\x9f\ud800"
    with answering(reply(odd)) as server:
        assert answer_of(profile(server.url)) == "ab[1mc\nd\te\ufffd"


def test_half_a_surrogate_pair_is_kept_for_the_other_half() -> None:
    halves = ["a\ud83d", "", "\ude00b\ud83d", "x", "\ude00", "\ud83d"]
    events = [
        f"data: {json.dumps({'choices': [{'delta': {'content': half}}]})}\n\n" for half in halves
    ]
    pieces = streamed([*(event.encode() for event in events), b"data: [DONE]\n\n"], lambda: None)
    assert list(pieces) == ["a", "😀b", "\ufffdx", "\ufffd", "\ufffd"]


def test_an_unwanted_answer_is_abandoned() -> None:
    with stand_in(Manner(slow_s=30)) as url:
        pieces = ask(profile(url), HELLO, None, is_wanted=lambda: False)
        began = time.monotonic()
        with pytest.raises(ClientGoneError):
            next(pieces)
        assert time.monotonic() - began < 25


def test_the_health_of_a_gateway_is_the_result_of_its_health_check() -> None:
    with stand_in() as url:
        found = health(profile(url))
        assert (found.ready, str(found.said)) == (True, "Box is ready")
    # A response of any length.
    with answering(response(b"x" * (1 << 22))) as server:
        assert health(profile(server.url)).ready
    for answer, reason in (
        (response(status="503 No"), "it returned HTTP 503"),
        (response(status="302 No", headers={"Location": "/"}), "it returned HTTP 302"),
        (b"", "closed the connection"),
        (b"nothing", "not HTTP"),
    ):
        with answering(answer) as server:
            found = health(profile(server.url))
        assert not found.ready
        assert reason in str(found.said)
        assert found.advice is not None


def test_a_health_check_of_a_silent_gateway_is_bounded_in_time() -> None:
    def silent(_: Request, connection: socket.socket) -> None:
        connection.recv(1)

    began = time.monotonic()
    with answering(silent) as server:
        found = health(profile(server.url), limit_s=0.5)
    assert "within 0.5 s" in str(found.said)
    assert time.monotonic() - began < 60
