"""Our services on a machine with systemd, asked from the machine's own network."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.machine import Machine, machine
from tests.support.network_namespaces import Network, network_of
from tests.support.web_servers import unverified
from tests.support.wizard_visits import Visitor

SECONDS = 30


@dataclass(frozen=True)
class Service:
    """One of our services on a machine, asked from its own network."""

    machine: Machine
    network: Network
    name: str
    port: int
    tls: bool = False

    def connect(self) -> http.client.HTTPConnection:
        """A connection that is not made yet."""
        return _Connection(self)

    def visitor(self) -> Visitor:
        """Who comes in by a new link of the wizard."""
        told = self.machine.run("wizard-app", "new-token", "--production", "--json")
        visitor = Visitor(self.connect)
        assert visitor.ask("/?" + json.loads(told)["url"].partition("?")[2]).status == 302
        return visitor

    def systemctl(self, *words: str) -> None:
        """Have systemd do something with it."""
        self.machine.run("systemctl", *words, f"{self.name}.service")

    def process(self) -> int:
        """Its main process."""
        asked = ("systemctl", "show", "--value", "--property=MainPID", f"{self.name}.service")
        return int(self.machine.run(*asked))

    def others(self) -> list[int]:
        """Its other processes."""
        found = self.machine.run("pgrep", "--parent", str(self.process()))
        return [int(number) for number in found.split()]

    def answers(self) -> str:
        """What `/healthz` says."""
        connection = self.connect()
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().read().decode()
        finally:
            connection.close()


class _Connection(http.client.HTTPConnection):
    def __init__(self, service: Service) -> None:
        super().__init__("127.0.0.1", service.port, timeout=SECONDS)
        self._service = service

    def connect(self) -> None:
        plain = self._service.network.socket(timeout_s=SECONDS)
        plain.connect((self.host, self.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._service.tls:
            self.sock = unverified().wrap_socket(plain)
        else:
            self.sock = plain


@contextlib.contextmanager
def services() -> Iterator[tuple[Service, Service]]:
    """The dashboard and the wizard of a machine that is not set up."""
    with machine() as booted, network_of(booted.init) as network:
        booted.run("platformctl", "services", "install", "--programs", "/usr/local/bin")
        yield (
            Service(booted, network, "platform-pwa", 8089),
            Service(booted, network, "platform-wizard", 8088, tls=True),
        )
        told = booted.run("journalctl", "--no-pager", "--unit=platform-*")
        assert "Traceback" not in told
        assert "CaNaRy" not in told
