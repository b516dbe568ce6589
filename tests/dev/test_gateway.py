"""The stand-in gateway, as the chat uses it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from dev.distributions import ROOT
from dev.samples.gateway import LIMIT_BYTES, Manner
from tests.support.gateways import stand_in
from tests.support.releases import clean_environment
from tests.support.running import run

MINUTE_S = 60
CHAT, COMPLETIONS = "/chat", "/v1/chat/completions"
HELLO: dict[str, dict[str, Any]] = {
    CHAT: {"message": "hello"},
    COMPLETIONS: {"messages": [{"content": "hello"}]},
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    with stand_in() as url:
        yield url


def post(url: str, body: Any, **options: Any) -> requests.Response:
    return requests.post(url, json=body, timeout=MINUTE_S, **options)


@pytest.mark.parametrize("path", ["/healthz", "/api/health", "/v1/models"])
def test_a_health_check_is_answered(gateway: str, path: str) -> None:
    assert requests.get(gateway + path, timeout=MINUTE_S).status_code == 200
    assert requests.head(gateway + path, timeout=MINUTE_S).status_code == 200


def test_the_reply_repeats_the_message_and_says_that_it_is_from_a_stand_in(gateway: str) -> None:
    answer = post(gateway + CHAT, {"message": "Is it *late*?\nHow late?"}).json()
    assert list(answer) == ["reply"]
    for said in ("stand-in", "> Is it *late*?\n> How late?\n", "| words | 5 |"):
        assert said in answer["reply"]


def test_the_reply_answers_the_last_message_of_a_conversation(gateway: str) -> None:
    told = [{"role": "user", "content": text} for text in ("first", "second", "third")]
    answer = post(gateway + COMPLETIONS, {"model": "x", "messages": told}).json()
    (choice,) = answer["choices"]
    assert (answer["object"], choice["message"]["role"]) == ("chat.completion", "assistant")
    said = choice["message"]["content"]
    assert "> third\n" in said
    assert "first" not in said
    assert "after 2 messages" in said


def test_a_stream_contains_the_same_reply_in_pieces_and_an_end_marker(gateway: str) -> None:
    whole = post(gateway + COMPLETIONS, HELLO[COMPLETIONS]).json()
    streamed = post(gateway + COMPLETIONS, HELLO[COMPLETIONS] | {"stream": True}, stream=True)
    assert streamed.headers["Content-Type"] == "text/event-stream"
    lines = [line for line in streamed.iter_lines(decode_unicode=True) if line]
    assert all(line.startswith("data: ") for line in lines)
    *events, end = (line.removeprefix("data: ") for line in lines)
    assert end == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events]
    pieces = [choice["delta"].get("content", "") for choice in choices]
    assert len([piece for piece in pieces if piece]) > 10
    assert "".join(pieces) == whole["choices"][0]["message"]["content"]
    assert [choice["finish_reason"] for choice in choices][-2:] == [None, "stop"]


def test_the_stream_for_the_longest_message_has_a_limited_number_of_pieces(gateway: str) -> None:
    body = {"messages": [{"content": "word " * 50_000}], "stream": True}
    assert post(gateway + COMPLETIONS, body).text.count("data: ") < 70


@pytest.mark.parametrize(
    ("path", "bodies"),
    [
        # Nothing, invalid JSON, invalid UTF-8, too deep, not an object, and no message.
        (CHAT, [b"", b"{", b"\xff", b"[" * 100_000, b"[]", b"{}"]),
        (CHAT, [b'{"message": 1}', b'{"message": " "}']),
        (COMPLETIONS, [b"{}", b'{"messages": []}', b'{"messages": ["a"]}']),
        (COMPLETIONS, [b'{"messages": [{"role": "user"}]}']),
    ],
    ids=["no-document", "no-text", "no-messages", "no-content"],
)
def test_an_invalid_message_is_refused_with_a_reason(
    gateway: str, path: str, bodies: list[bytes]
) -> None:
    for body in bodies:
        answer = requests.post(gateway + path, body, timeout=MINUTE_S)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].endswith(".")


def test_a_wrong_address_or_method_is_refused(gateway: str) -> None:
    for method, path, status in (
        *(("GET", "/", 404), ("POST", "/chat/", 404)),
        *(("GET", CHAT, 405), ("PUT", COMPLETIONS, 405), ("BREW", "/healthz", 405)),
    ):
        answer = requests.request(method, gateway + path, timeout=MINUTE_S)
        assert answer.status_code == status
        assert ("Allow" in answer.headers) is (status == 405)


def test_a_body_over_the_limit_is_refused_and_one_at_the_limit_is_read(gateway: str) -> None:
    def sent(size: int) -> int:
        return requests.post(gateway + CHAT, b" " * size, timeout=MINUTE_S).status_code

    assert sent(LIMIT_BYTES) == 400
    assert sent(LIMIT_BYTES + 1) == 413


@pytest.mark.parametrize("length", ["99999999999999999999", "-1", "one", "²"])
def test_an_invalid_length_is_refused_without_waiting(gateway: str, length: str) -> None:
    host, _, port = gateway.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), MINUTE_S) as client:
        head = f"POST /chat HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n"
        client.sendall(head.encode())
        assert re.match(rb"HTTP/1.1 41[13] ", client.recv(64))


def test_a_connection_is_usable_after_a_refusal(gateway: str) -> None:
    with requests.Session() as session:
        for path in ("/nowhere", CHAT, "/nowhere", CHAT):
            answer = session.post(gateway + path, json=HELLO[CHAT], timeout=MINUTE_S)
            assert answer.status_code == (200 if path == CHAT else 404)


@pytest.mark.parametrize(("only", "other"), [("simple", COMPLETIONS), ("chat-completions", CHAT)])
def test_with_one_protocol_the_other_is_not_found(only: str, other: str) -> None:
    with stand_in(Manner(pause_s=0, only=only)) as url:
        statuses = {path: post(url + path, HELLO[path]).status_code for path in HELLO}
        assert requests.get(f"{url}/healthz", timeout=MINUTE_S).status_code == 200
    assert statuses.pop(other) == 404
    assert list(statuses.values()) == [200]


@pytest.mark.parametrize("path", HELLO)
def test_a_gateway_with_a_token_refuses_requests_without_it(path: str) -> None:
    with stand_in(Manner(pause_s=0, token="right")) as url:
        answers = [
            post(url + path, HELLO[path], headers={"Authorization": given} if given else {})
            for given in ("", "Bearer wrong", "right", "Bearer rïght", "Bearer right")
        ]
        assert requests.get(f"{url}/healthz", timeout=MINUTE_S).status_code == 200
    assert [answer.status_code for answer in answers] == [401, 401, 401, 401, 200]
    assert answers[0].headers["WWW-Authenticate"] == "Bearer"


def test_a_slow_gateway_does_not_block_others() -> None:
    with stand_in(Manner(pause_s=0, slow_s=3.0)) as url, ThreadPoolExecutor() as pool:
        slow = [pool.submit(post, url + path, HELLO[path]) for path in HELLO]
        requests.get(f"{url}/healthz", timeout=MINUTE_S)
        assert not any(answer.done() for answer in slow)
        assert all(answer.result().elapsed.total_seconds() >= 3 for answer in slow)


def test_the_program_prints_its_address_and_ends_with_ctrl_c() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "dev.samples.gateway", "--port", "0"],
        cwd=ROOT,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert "stand-in" in said
        (url,) = re.findall(r"http://127\.0\.0\.1:\d+$", said, re.MULTILINE)
        assert post(url + CHAT, HELLO[CHAT]).ok
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "Stopped.\n"
        assert process.wait(MINUTE_S) == 0


@pytest.mark.parametrize("address", ["taken", "256.1.1.1", "::1"])
def test_an_address_that_it_cannot_listen_on_is_reported_in_one_sentence(address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host = "127.0.0.1" if address == "taken" else address
        port = str(taken.getsockname()[1])
        command = (sys.executable, "-m", "dev.samples.gateway", "--bind", host, "--port", port)
        ended = run(*command, cwd=ROOT, env=clean_environment())
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"Error: Cannot listen on {host}, port {port}: ")
    assert ended.stderr.count("\n") == 1
