"""Sockets that systemd passes on, and the variables that describe them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from platform_common.errors import WrongUsageError
from platform_common.web.serving import listening
from platform_common.web.serving.listening import addresses

HERE = "127.0.0.1:0"
# The first descriptor in these tests: far above those that the test runner has open.
FIRST = 700
VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID")
Pass = Callable[..., None]


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pass]:
    """A function that passes descriptors to this process, as systemd does at the start."""
    monkeypatch.setattr(listening, "_FIRST_PASSED", FIRST)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with contextlib.ExitStack() as stack:

        def give(*descriptors: socket.socket | int, count: str | None = None) -> None:
            for number, given in enumerate(descriptors):
                source = given if isinstance(given, int) else given.fileno()
                copy = fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, FIRST + number)
                stack.callback(os.close, copy)
                assert copy == FIRST + number
                if not isinstance(given, int):
                    stack.callback(given.close)
            monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
            monkeypatch.setenv("LISTEN_FDS", str(len(descriptors)) if count is None else count)
            monkeypatch.setenv("LISTEN_FDNAMES", "a.socket")

        yield give


def on_port(family: socket.AddressFamily, host: str) -> socket.socket:
    return socket.create_server((host, 0), family=family)


def on_path(name: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(name)
    made.listen()
    return made


def remaining_variables() -> set[str]:
    """The names of the variables that are still set."""
    return {name for name in VARIABLES if name in os.environ}


def test_every_passed_socket_becomes_an_address(passing: Pass, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    made = [
        on_port(socket.AF_INET, "127.0.0.1"),
        on_port(socket.AF_INET6, "::"),
        on_path(str(path)),
        on_path("\0platform-test-listening"),
    ]
    first, second = (one.getsockname()[1] for one in made[:2])
    passing(*made)
    expected = [f"127.0.0.1:{first}", f"[::]:{second}", f"unix:{path}"]
    assert addresses(HERE) == [*expected, "unix:@platform-test-listening"]
    # A second call still finds the sockets.
    assert addresses("nonsense")[:3] == expected
    with socket.create_connection(("127.0.0.1", first)):
        pass
    # Gunicorn removes these two once it has the sockets.
    assert remaining_variables() == {"LISTEN_PID", "LISTEN_FDS"}


def test_without_sockets_the_given_address_is_used(passing: Pass) -> None:
    assert addresses(HERE) == [HERE]
    passing(count="0")
    assert addresses(HERE) == [HERE]
    assert remaining_variables() == set()
    with pytest.raises(WrongUsageError, match="not an address to listen on"):
        addresses("nonsense")


@pytest.mark.parametrize("process", ["", "0", "1", "-1", "x", "00", "9" * 30, " {}", "{}\n", "0{}"])
def test_sockets_for_another_process_are_ignored(
    process: str, passing: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing(on_port(socket.AF_INET, "127.0.0.1"))
    monkeypatch.setenv("LISTEN_PID", process.format(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", "x")
    assert addresses(HERE) == [HERE]
    # Gunicorn would read the number before it checks which process it is for.
    assert remaining_variables() == set()


@pytest.mark.parametrize("count", ["", "x", "-1", "1.0", "+1", " 1", "1\n", "٣", "1" * 40])
def test_an_invalid_number_of_sockets_is_refused(count: str, passing: Pass) -> None:
    passing(on_port(socket.AF_INET, "127.0.0.1"), count=count)
    with pytest.raises(WrongUsageError, match="not a number of sockets"):
        addresses(HERE)


def test_a_missing_descriptor_or_one_that_is_not_a_socket_is_refused(passing: Pass) -> None:
    with tempfile.TemporaryFile() as file:
        passing(on_port(socket.AF_INET, "127.0.0.1"), file.fileno(), count="999999999")
        with pytest.raises(WrongUsageError, match=f"Descriptor {FIRST + 1} .* is not a socket"):
            addresses(HERE)
        os.close(FIRST + 1)
        with pytest.raises(WrongUsageError, match=f"Descriptor {FIRST + 1} .* is not a socket"):
            addresses(HERE)
        # The test closes it again at the end.
        os.dup2(file.fileno(), FIRST + 1)


def test_a_socket_that_does_not_listen_is_refused(
    passing: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = socket.socketpair()
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    unbound = socket.socket()
    packets = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    packets.bind("")
    packets.listen()
    passing(one, other, datagrams, unbound, packets, count="1")
    for number in range(5):
        monkeypatch.setattr(listening, "_FIRST_PASSED", FIRST + number)
        with pytest.raises(WrongUsageError, match="does not listen for connections") as refused:
            addresses(HERE)
        assert refused.value.hint is not None
        assert "Accept=no" in refused.value.hint
