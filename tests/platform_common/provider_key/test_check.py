"""The key test against servers that misbehave: bounded, reported, and without showing the key."""

from __future__ import annotations

import base64
import gzip
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, cycle, repeat
from urllib.parse import quote

import pytest

from platform_common.net.client import LIMIT_BYTES, Bounds, fetch
from platform_common.net.errors import ExchangeError
from platform_common.provider_key.check import BusyError, check_key
from platform_common.provider_key.result import KeyCheck
from platform_common.records.catalogue import Kind
from tests.support.key_tests import CANARY, KINDS, SECRET_CANARY, credentials, provider
from tests.support.network import free_port
from tests.support.raw_server import RawServer, Request, response, serving
from tests.support.waiting import no_thread_left

LISTING = b'{"data": [{"id": "a"}]}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CLOSED = "closed the connection before its answer was complete"
NO_HTTP = "sent an answer that is not HTTP"
TOO_MUCH = "sent a response that is too large"
LATE = "did not answer within 0.4 s"
PAUSE = b""
Script = Callable[[], Iterable[bytes]]


def playing(script: Script) -> RawServer:
    """A server that sends the pieces of `script`, with a short pause for each `PAUSE`."""

    def answer(_: Request, connection: socket.socket) -> None:
        for piece in script():
            connection.sendall(piece)
            if server.stopping.wait(0 if piece else 0.02):
                return

    server = RawServer(answer)
    return server


def sending(*pieces: bytes) -> Script:
    """Send these pieces once."""
    return lambda: pieces


def dripping(begin: bytes, piece: bytes) -> Script:
    """Send `begin`, then `piece` again and again, slowly."""
    return lambda: chain((begin,), cycle((piece, PAUSE)))


def flooding(begin: bytes, piece: bytes) -> Script:
    """Send `begin`, then `piece` again and again, without a pause."""
    return lambda: chain((begin,), repeat(piece, 4096))


def ask(server: RawServer, kind: Kind = "chat-compatible", *, limit_s: float = 0.4) -> KeyCheck:
    return check_key(
        provider(kind), credentials(kind), endpoint=server.url, model="m", limit_s=limit_s
    ).check


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
BOMB = response(gzip.compress(bytes(1 << 26)), headers={"Content-Encoding": "gzip"})
MISBEHAVIOURS: dict[str, tuple[Script, str]] = {
    "never-answers": (dripping(b"", PAUSE), LATE),
    "status-drip": (dripping(b"", b"H"), LATE),
    "header-drip": (dripping(HEAD + b"X-A: ", b"x"), LATE),
    "body-drip": (dripping(HEAD + b"Content-Length: 9999\r\n\r\n", b"x"), LATE),
    "chunk-length-drip": (dripping(CHUNKED, b"0"), LATE),
    "hundred-continues": (dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), LATE),
    "endless-body": (flooding(HEAD + b"\r\n", bytes(65536)), TOO_MUCH),
    "endless-chunks": (flooding(CHUNKED, b"8000\r\n" + bytes(0x8000) + b"\r\n"), TOO_MUCH),
    "a-gibibyte": (flooding(HEAD + b"Content-Length: 1073741824\r\n\r\n", bytes(65536)), TOO_MUCH),
    "astronomic-length": (sending(HEAD + b"Content-Length: %d\r\n\r\n{}" % 10**30), CLOSED),
    "endless-line": (flooding(HEAD + b"X-A: ", b"a" * 65536), NO_HTTP),
    "endless-headers": (flooding(HEAD, b"X-A: b\r\n" * 999), NO_HTTP),
    "fat-headers": (flooding(HEAD, b"X-A: " + b"b" * 60000 + b"\r\n"), TOO_MUCH),
    "gzip-bomb": (sending(BOMB), "sent a compressed answer, although it was asked not to"),
    "http-0.9": (sending(LISTING), NO_HTTP),
    "ssh": (sending(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n"), NO_HTTP),
    "odd-status": (sending(b"HTTP/1.1 9999 What\r\n\r\n"), NO_HTTP),
    "nothing": (sending(), CLOSED),
    "cut-body": (sending(response(LISTING, length=999)), CLOSED),
    "cut-chunk": (sending(CHUNKED + b"999\r\n{}"), CLOSED),
    "broken-chunk": (sending(CHUNKED + b"zz\r\n{}\r\n"), CLOSED),
}


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_key_06_a_misbehaving_server_is_reported_within_the_limit(name: str) -> None:
    script, said = MISBEHAVIOURS[name]
    with no_thread_left(), playing(script) as server:
        began = time.monotonic()
        check = ask(server, limit_s=0.4 if said == LATE else 10)
        assert time.monotonic() - began < 8
    assert said in check.message
    assert not check.ok


def test_a_reset_connection_is_reported() -> None:
    def reset(_: Request, connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        connection.close()

    with RawServer(reset) as server:
        assert CLOSED in ask(server, limit_s=10).message


def test_a_refused_connection_is_reported() -> None:
    server = f"127.0.0.1:{free_port()}"
    check = check_key(provider(), credentials(), endpoint=f"http://{server}/v1").check
    assert (check.ok, check.message) == (False, f"{server} refused the connection")


@pytest.mark.long
def test_key_06_the_whole_test_takes_at_most_ten_seconds() -> None:
    drips: list[Script] = [MISBEHAVIOURS[n][0] for n in ("never-answers", "header-drip")]
    drips.append(MISBEHAVIOURS["body-drip"][0])
    silent = RawServer(lambda *_: None)

    def test(url: str) -> KeyCheck:
        return check_key(provider(), credentials(), endpoint=url).check

    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        urls = [stack.enter_context(server).url for server in (*map(playing, drips), silent)]
        urls[-1] = silent.url.replace("http:", "https:")  # The server waits for the rest.
        began = time.monotonic()
        checks = list(pool.map(test, urls))
        wall_s = time.monotonic() - began
    assert 9.9 < wall_s < 20
    assert {check.message.partition(" ")[2] for check in checks} == {"did not answer within 10 s"}
    assert all(9_900 < check.elapsed_ms < 20_000 for check in checks)


GROWTH = """
import pathlib, re, sys
from platform_common.provider_key.check import check_key
from tests.support.key_tests import credentials, provider
def peak():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s*([0-9]+) kB", status)[1])
def ask(url): return check_key(provider(), credentials(), endpoint=url).check.ok
assert ask(sys.argv[1])
before = peak()
assert [ask(url) for url in sys.argv[2:]] == [False] * (len(sys.argv) - 3) + [True]
print(peak() - before)
"""


def test_key_06_no_response_uses_much_memory() -> None:
    most = b'{"data": [' + b"{}," * ((LIMIT_BYTES - 400) // 3) + b"{}]}"
    names = [
        *("endless-body", "endless-chunks", "a-gibibyte", "astronomic-length", "endless-line"),
        *("endless-headers", "fat-headers", "gzip-bomb"),
    ]
    servers = [playing(MISBEHAVIOURS[name][0]) for name in names]
    servers = [serving({"/models": LISTING}), *servers, serving({"/models": most})]
    with ExitStack() as stack:
        words = [sys.executable, "-c", GROWTH, *(stack.enter_context(one).url for one in servers)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 16 * 1024


def test_key_07_at_most_four_tests_run_at_a_time() -> None:
    release, arrived, most = threading.Event(), [0], [0]
    lock = threading.Lock()

    def answer(_: Request, connection: socket.socket) -> None:
        with lock:
            arrived[0] += 1
            most[0] = max(most[0], arrived[0])
        release.wait(30)
        with lock:
            arrived[0] -= 1
        connection.sendall(response(LISTING))

    def outcome(_: int) -> str:
        began = time.monotonic()
        try:
            return str(ask(server, limit_s=30).ok)
        except BusyError as busy:
            return f"{busy.message}, after two seconds: {time.monotonic() - began >= 1.9}"

    with RawServer(answer) as server, ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(outcome, number) for number in range(20)]
        deadline = time.monotonic() + 25
        while sum(future.done() for future in asked) < 16 and time.monotonic() < deadline:
            time.sleep(0.05)
        release.set()
        told = [future.result() for future in asked]
        refused = "Other keys are being tested, after two seconds: True"
        assert sorted(told) == [refused] * 16 + ["True"] * 4
        assert most[0] == 4
        assert ask(server, limit_s=2).ok


def test_key_04_a_redirect_is_not_followed() -> None:
    with (
        serving({"/v1/models": LISTING}) as other,
        playing(
            sending(response(b"", "307 Away", {"Location": f"{other.url}/v1/models?key=x"}))
        ) as server,
    ):
        checks = [ask(server, kind, limit_s=10) for kind in KINDS]
        assert not any(check.ok for check in checks)
        assert {check.http_status for check in checks} == {307}
        assert all(f"redirects to {other.url};" in check.message for check in checks)
    assert other.requests == []


def test_the_request_names_the_host_and_asks_for_no_compression() -> None:
    with serving({"/models": LISTING}) as server:
        assert ask(server, limit_s=5).ok
        assert server.requests[0].headers["host"] == server.url.removeprefix("http://")
    (asked,) = server.requests
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["authorization"] == f"Bearer {CANARY}"


def test_clk_02_a_jumping_clock_does_not_affect_durations(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = iter(range(10**9, 2 * 10**9, 10**8))
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    with serving({"/models": LISTING}) as server:
        check = ask(server, limit_s=5)
    assert check.ok
    assert check.elapsed_ms < 5_000


def echo(status: str, **headers: str) -> Script:
    """A response with every secret in every place."""
    said = f"{CANARY} {SECRET_CANARY}"
    more = {"X-Key": said, "Location": f"http://{CANARY}/?key={CANARY}", **headers}
    return sending(response(said.encode(), f"{status} {said}", more))


LEAKS: dict[str, Script] = {
    **{
        status: echo(status)
        for status in ("200", "204", "301", "400", "401", "403", "404", "429", "500")
    },
    "compressed": echo("200", **{"Content-Encoding": CANARY}),
    "not-http": sending(CANARY.encode() + b"\r\n\r\n"),
    "odd-status": sending(f"HTTP/1.1 {CANARY}\r\n\r\n".encode()),
    "odd-header": sending(f"HTTP/1.1 200 OK\r\n{CANARY}\r\n\r\n{{}}".encode()),
    "cut": sending(HEAD + b"Content-Length: 999\r\n\r\n" + CANARY.encode()),
    "silent": MISBEHAVIOURS["never-answers"][0],
    "hung-up": MISBEHAVIOURS["nothing"][0],
}
SHAPES = {
    shape
    for secret in (CANARY, SECRET_CANARY)
    for shape in (
        secret,
        secret.lower(),
        quote(secret, safe=""),
        quote(secret),
        base64.b64encode(secret.encode()).decode(),
    )
}


@pytest.mark.parametrize("name", LEAKS)
def test_key_01_no_message_or_log_contains_a_secret(
    name: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with playing(LEAKS[name]) as server, ThreadPoolExecutor(3) as pool:
        # The other servers answer at once; the limit allows for a busy machine.
        limit_s = 1 if name == "silent" else 10
        checks = list(pool.map(lambda kind: ask(server, kind, limit_s=limit_s), KINDS))
    assert len(server.requests) == len(KINDS)
    said = "".join([*map(repr, checks), caplog.text, *capfd.readouterr()])
    assert {shape for shape in SHAPES if shape in said} == set()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_key_01_an_error_about_a_missing_server_contains_no_secret(kind: Kind, scheme: str) -> None:
    endpoint = f"{scheme}://127.0.0.1:{free_port()}"
    check = check_key(provider(kind), credentials(kind), endpoint=endpoint, model="m").check
    assert (check.ok, {shape for shape in SHAPES if shape in repr(check)}) == (False, set())


@pytest.mark.parametrize(
    "target",
    [f"?key={CANARY}\r\nX: y", f"?key={CANARY} x", f"?key={CANARY}é", "?key=\ud800" + CANARY],
    ids=["line-feed", "blank", "letter", "surrogate"],
)
def test_key_01_an_exception_has_no_cause_that_contains_the_key(target: str) -> None:
    with serving({}) as server, pytest.raises(ExchangeError) as caught:
        fetch(f"{server.url}/{target}", {"X-Key": f"{CANARY}\n…"}, Bounds(limit_s=2))
    error: BaseException = caught.value
    assert (error.__cause__, error.__context__) == (None, None)
    assert CANARY not in repr(error)
