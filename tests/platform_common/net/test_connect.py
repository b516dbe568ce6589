"""Which addresses a connection may go to, and how long it may take."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from platform_common.net import connect as connecting
from platform_common.net.connect import RefusedAddressError, connect, is_offline, is_refused
from platform_common.provider_key.check import check_key
from tests.support.key_tests import credentials, provider
from tests.support.network import free_port
from tests.support.raw_server import RawServer, serving

LISTING = {"/models": b'{"data": [{}]}', "/v1/models": b'{"data": [{}]}'}
REFUSED = "Nothing is sent to "
OWN = "is one of this device's own web pages"
NO_URL = "The address of Test Cloud must "
# An entry of getaddrinfo: family, kind, protocol, canonical name, address.
Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]


def found(ip: str, port: int) -> Found:
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    return family, socket.SOCK_STREAM, 6, "", (ip, port)


@pytest.fixture(autouse=True)
def _localhost_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    # As in /etc/hosts, which a minimal root folder does not have.
    ask = socket.getaddrinfo

    def answer(host: str, *args: Any, **options: Any) -> Any:
        return ask("127.0.0.1" if host.lower() == "localhost" else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answer)


def look_up(*answers: Found) -> Callable[..., list[Found]]:
    return lambda *_, **__: list(answers)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        *((f"http://{host}/v1", REFUSED) for host in (
            "169.254.169.254", "169.254.0.1:8080", "2852039166", "0xA9FEA9FE",
            "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "169.254.43518", "169.16689662",
            "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::169.254.169.254]",
            "[64:ff9b::169.254.169.254]", "[2002:a9fe:a9fe::1]", "[fe80::1]", "[febf::1]",
            "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16", "224.0.0.1",
            "255.255.255.255", "240.0.0.1", "[ff02::1]",
        )),
        *((f"http://{host}/v1", OWN) for host in (
            "127.0.0.1:8088", "127.0.0.1:8089", "localhost:8088", "127.1:8088", "2130706433:8089",
            "0:8088", "0.0.0.0:8089", "127.8.8.8:8088", "[::1]:8088", "[::]:8089",
            "[::ffff:127.0.0.1]:8088",
        )),
        *((url, NO_URL) for url in (
            "ftp://127.0.0.1:{port}/v1", "file:///etc/passwd", "gopher://127.0.0.1:{port}/",
            "127.0.0.1:{port}/v1", "//127.0.0.1:{port}/v1", "http:///v1", "http://:{port}/v1",
            "http://user:word@127.0.0.1:{port}/v1", "http://127.0.0.1:{port}/v1?a=b",
            "http://127.0.0.1:{port}/v1#a", "http://127.0.0.1:{port} /v1",
            "http://127.0.0.1:{port}/v1\r\nX-A: b", "http://127.0.0.1:0/v1",
            "http://127.0.0.1:65536/v1", "http://127.0.0.1:port/v1", "http://[::1/v1",
            "http://ⅼocalhost:{port}/v1",
        )),
    ],
)  # fmt: skip
def test_key_03_nothing_is_sent_to_an_address_that_cannot_be_a_provider(
    url: str, said: str
) -> None:
    with serving(LISTING) as stub:
        check = check_key(
            provider(), credentials(), endpoint=url.replace("{port}", stub.url.rpartition(":")[2])
        ).check
    assert not check.ok
    assert said in check.message
    assert stub.requests == []


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:{port}", "http://localhost:{port}/v1", "http://127.1:{port}/v1/"),
        *("http://2130706433:{port}/v1", "http://0x7f.1:{port}/v1", "http://LOCALHOST:{port}/v1"),
    ],
)
def test_key_03_a_model_on_this_machine_is_allowed(url: str) -> None:
    with serving(LISTING) as stub:
        endpoint = url.replace("{port}", stub.url.rpartition(":")[2])
        assert check_key(provider(), credentials(), endpoint=endpoint).check.ok
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    "ip",
    [
        *("10.0.0.1", "192.168.1.20", "172.16.0.1", "100.64.0.1", "127.0.0.1", "::1", "fd12::1"),
        *("::ffff:127.0.0.1", "::ffff:192.168.0.1", "1.1.1.1", "2606:4700::1111"),
        "64:ff9b::101:101",
    ],
)
def test_key_03_the_local_network_and_the_internet_are_allowed(ip: str) -> None:
    assert not is_refused(ip)


@pytest.mark.parametrize("at", [0, 1], ids=["first", "second"])
def test_key_03_a_name_that_also_resolves_to_a_refused_address_is_refused(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(LISTING) as stub:
        port = int(stub.url.rpartition(":")[2])
        answers = [found("127.0.0.1", port)]
        answers.insert(at, found("169.254.169.254", port))
        monkeypatch.setattr(socket, "getaddrinfo", look_up(*answers))
        with pytest.raises(RefusedAddressError, match=r"^Nothing is sent to 169\.254\.169\.254:"):
            connect("metadata.example", port, time.monotonic() + 5)
        assert not stub.requests


def test_key_03_our_own_pages_at_another_address_of_this_machine_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(LISTING) as stub:
        port = int(stub.url.rpartition(":")[2])
        monkeypatch.setattr(connecting, "OWN_PORTS", {port})
        monkeypatch.setattr(connecting, "_is_this_machine", lambda _: False)
        with pytest.raises(RefusedAddressError, match=OWN):
            connect("127.0.0.1", port, time.monotonic() + 5)


def test_the_next_address_is_tried_when_one_refuses_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(LISTING) as stub:
        port = int(stub.url.rpartition(":")[2])
        addresses = (found("127.0.0.1", free_port()), found("127.0.0.1", port))
        monkeypatch.setattr(socket, "getaddrinfo", look_up(*addresses))
        with connect("two.example", port, time.monotonic() + 5) as connection:
            assert connection.getpeername()[1] == port


def test_an_address_that_never_answers_leaves_time_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The queue of one connection is full: further connections wait forever.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, RawServer(print) as stub:
        held = [socket.socket() for _ in range(2)]
        for connection in held:
            connection.setblocking(False)
            connection.connect_ex(full.getsockname())
        port = int(stub.url.rpartition(":")[2])
        addresses = (found("127.0.0.1", full.getsockname()[1]), found("127.0.0.1", port))
        monkeypatch.setattr(socket, "getaddrinfo", look_up(*addresses))
        began = time.monotonic()
        with connect("two.example", port, began + 1) as reached:
            assert reached.getpeername()[1] == port
        assert time.monotonic() - began > 0.4
        for connection in held:
            connection.close()


def test_a_hanging_resolver_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(30) and [])
    began = time.monotonic()
    check = check_key(provider(), credentials(), endpoint="http://slow.example", limit_s=0.3).check
    over.set()
    assert time.monotonic() - began < 10
    assert not check.ok
    assert check.message in (_NO_ANSWER.replace("api", "slow"), _OFFLINE)


_NO_ANSWER = "This device could not look up api.example: no name server answers"
_OFFLINE = "This device has no internet connection"


@pytest.mark.parametrize(
    ("code", "offline", "message"),
    [
        (socket.EAI_NONAME, False, "This device cannot find api.example"),
        (socket.EAI_AGAIN, False, _NO_ANSWER),
        (socket.EAI_NONAME, True, _OFFLINE),
        (socket.EAI_AGAIN, True, _OFFLINE),
    ],
    ids=["unknown", "no-resolver", "unknown-offline", "no-resolver-offline"],
)
def test_an_unknown_host_name_is_reported(
    code: int, offline: bool, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(code, "in the words of the system")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr("platform_common.net.errors.is_offline", lambda: offline)
    check = check_key(provider(), credentials(), endpoint="https://api.example/v1").check
    assert (check.ok, check.message) == (False, message)


@pytest.mark.parametrize("host", ["x" * 64 + ".example", "a..b", ".", "-.example"])
def test_an_invalid_host_name_is_reported(host: str) -> None:
    check = check_key(provider(), credentials(), endpoint=f"http://{host}/v1").check
    assert not check.ok
    assert host in check.message or "internet connection" in check.message


def test_a_device_without_any_route_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unroutable(socket.socket):
        def connect(self, address: object, /) -> None:
            raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket, "socket", Unroutable)
    assert is_offline()
