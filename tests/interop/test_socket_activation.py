"""The installed programs with sockets from systemd's own activation program."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop.conftest import call
from tests.support.network import free_port
from tests.support.network_namespaces import connected, new_network
from tests.support.releases import clean_environment, program
from tests.support.waiting import wait_until
from tests.support.web_servers import unverified

SECONDS = 30
OK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
Address = str | tuple[str, int]


class Activated(NamedTuple):
    """A program that starts at the first connection, with its process and its log."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        """The output of the program."""
        return self.log.read_text()


@contextlib.contextmanager
def activated(
    sockets: Sequence[str],
    command: Sequence[str],
    tmp_path: Path,
    env: Mapping[str, str],
    *options: str,
) -> Iterator[Activated]:
    """Run a program as systemd does once a client connects to one of `sockets`."""
    listen = [f"--listen={address}" for address in sockets]
    # The activator only passes on the variables that are named.
    passed = [f"--setenv={name}={value}" for name, value in env.items()]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["systemd-socket-activate", *listen, *options, *passed, *command],
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Activated(process, log)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(SECONDS)


def answer(address: Address, context: ssl.SSLContext | None = None) -> bytes:
    """The response of `/healthz` at that address."""
    internet = socket.AF_INET6 if address[0] == "::1" else socket.AF_INET
    plain = connected(socket.AF_UNIX if isinstance(address, str) else internet, address)
    with plain if context is None else context.wrap_socket(plain) as connection:
        connection.sendall(OK)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def serve(name: str, *words: str) -> list[str]:
    return [program(name), "serve", *words]


@pytest.fixture
def dashboard(tmp_path: Path) -> dict[str, str]:
    return {"PWA_DEV_STUB": "1", "PLATFORM_ROOT": str(tmp_path)}


def test_every_socket_is_served_across_reloads(dashboard: dict[str, str], tmp_path: Path) -> None:
    ports, path = (free_port(), free_port()), str(tmp_path / "socket")
    places: list[Address] = [("127.0.0.1", ports[0]), ("::1", ports[1]), path, "\0" + path]
    listen = [f"127.0.0.1:{ports[0]}", f"[::1]:{ports[1]}", path, f"@{path}"]
    # Binding its own address would fail here: it is not an address of this machine.
    command = serve("pwa-app", "--bind", "192.0.2.1:80")
    # This network has IPv6, even if the machine does not.
    with (
        new_network(up=True) as own,
        own.inside(),
        activated(listen, command, tmp_path, dashboard) as app,
    ):
        for place in places:
            assert answer(place).endswith(b"\r\n\r\nok")
        for _ in range(2):
            app.process.send_signal(signal.SIGHUP)
            for place in places:
                assert answer(place).endswith(b"\r\n\r\nok")
        app.process.send_signal(signal.SIGTERM)
        assert app.process.wait(SECONDS) == 0
        assert "rror" not in app.said()
    # The socket file is systemd's, and is kept for the next start.
    assert Path(path).is_socket()


def test_the_links_of_the_wizard_lead_to_every_socket(tmp_path: Path) -> None:
    ports = sorted((free_port(), free_port()))
    device = {"PLATFORM_ROOT": str(tmp_path / "device")}
    (tmp_path / "device").mkdir()
    listen = [*(f"127.0.0.1:{port}" for port in ports), str(tmp_path / "socket")]
    command = serve("wizard-app", "--production")
    with activated(listen, command, tmp_path, device):
        for port in ports:
            assert answer(("127.0.0.1", port), unverified()).endswith(b"\r\n\r\nok")
        words = (program("wizard-app"), "launch-url", "--production", "--json")
        told = call(*words, env=device)
        urls = [url.partition("/?token=")[0] for url in json.loads(told.stdout)["urls"]]
        assert urls == [f"https://127.0.0.1:{port}" for port in ports]


@pytest.mark.parametrize("name", ["pwa-app", "wizard-app"])
def test_a_socket_that_does_not_listen_is_reported_in_a_sentence(
    name: str, dashboard: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    env = dashboard | {"WIZARD_DEV_OUT": str(tmp_path / "out")}
    # It starts at a datagram, not at a connection.
    with activated([f"127.0.0.1:{port}"], serve(name), tmp_path, env, "--datagram") as app:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(("127.0.0.1", port))

            def ended() -> bool:
                with contextlib.suppress(ConnectionRefusedError):
                    client.send(b"hello")
                return app.process.poll() is not None

            wait_until(ended)
        assert app.process.returncode == 2
        assert "error: Descriptor 3 that systemd passed does not listen" in app.said()
        assert "Traceback" not in app.said()
    assert not (tmp_path / "out").exists()
