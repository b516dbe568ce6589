"""A real machine that a wizard sets up, looked at from a second network beside it.

The units of its gateways and of its tunnel are small, and `tailscale` is a stand-in; all
else is Debian's own.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support import stand_in_programs
from tests.support.machine import Machine, machine
from tests.support.network_namespaces import (
    Network,
    join,
    network_of,
    new_network,
    wait_for_port,
)
from tests.support.stand_in_programs import StandIn
from tests.support.web_servers import unverified
from tests.support.wizard_visits import Visitor

NEAR, FAR = "10.99.0.1", "10.99.0.2"
NEAR_V6, FAR_V6 = "fd99::1", "fd99::2"
PORT = 9443
PROFILES = ("hermes", "khoj", "openclaw")
TUNNEL = "platform-tunnel.service"
_WIZARD = "platform-wizard.service"
# It notes its environment, and goes on.
_GATEWAY = """User=agent
EnvironmentFile=/etc/platform/secrets.env
RuntimeDirectory=%N
ExecStart=/bin/sh -c 'env >"$RUNTIME_DIRECTORY/seen"; exec sleep infinity'"""
_TUNNEL = "ExecStart=sleep infinity"
_TIMEOUT_S = 90


@dataclass(frozen=True)
class Appliance:
    """A machine before and after it is set up; `far` is the network beside it."""

    machine: Machine
    near: Network
    far: Network
    tailscale: StandIn

    @property
    def root(self) -> Path:
        """Its files, as this process sees them."""
        return Path(f"/proc/{self.machine.init}/root")

    def read(self, path: str) -> str:
        """What is in one of its files."""
        return (self.root / path.lstrip("/")).read_text()

    def rights(self, path: str) -> str:
        """Mode and owner of one of its files, such as `640 root:agent`."""
        return self.machine.run("stat", "--format=%a %U:%G", path).strip()

    def state(self, unit: str) -> tuple[str, str]:
        """What systemd says of a unit: active or not, enabled or not."""
        asked = [self.machine.call("systemctl", verb, unit) for verb in ("is-active", "is-enabled")]
        active, enabled = (done.stdout.strip() for done in asked)
        return active, enabled

    def seen_by(self, profile: str) -> dict[str, str]:
        """The environment that a gateway was started with."""
        lines = self.read(f"/run/{profile}-gateway/seen").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def serve(self) -> Visitor:
        """Start its wizard in production; who comes in by its link, from the other network."""
        bind = f"--bind=[::]:{PORT}"
        command = ("wizard-app", "serve", "--production", bind)
        self.machine.run("systemd-run", "--quiet", f"--unit={_WIZARD}", *command)
        wait_for_port(self.far, NEAR, PORT)
        link = json.loads(self.machine.run("wizard-app", "launch-url", "--production", "--json"))
        visitor = Visitor(lambda: _Connection(self.far, NEAR, PORT))
        assert visitor.ask("/?" + link["url"].partition("?")[2]).status == 302
        return visitor

    def begin_anew(self) -> Visitor:
        """Start its wizard once more, with nothing answered; who comes in."""
        self.machine.run("systemctl", "stop", _WIZARD)
        self.machine.run("rm", "/var/lib/platform/wizard-state.json")
        return self.serve()

    def beside(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """How one of its programs ends that is run in the other network."""
        network = f"--net=/proc/self/fd/{self.far.descriptor}"
        enter = ("nsenter", f"--target={self.machine.init}", "--mount", network, "--wdns=/", "--")
        return subprocess.run(
            [*enter, *argv],
            pass_fds=(self.far.descriptor,),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )

    def log(self) -> str:
        """What its journal has of its wizard."""
        return self.machine.run("journalctl", "--no-pager", "--all", "--output=short-full")


@contextlib.contextmanager
def appliance() -> Iterator[Appliance]:
    """A machine as it comes from the image, not set up; it is gone when the block ends."""
    with (
        machine() as booted,
        network_of(booted.init) as near,
        new_network() as far,
    ):
        addresses = {f"{FAR}/24": f"{NEAR}/24", f"{FAR_V6}/64": f"{NEAR_V6}/64"}
        join(far, near, addresses)
        for user in ("agent", "platform"):
            booted.run("useradd", "--system", "--create-home", "--shell=/bin/sh", user)
        for profile in PROFILES:
            booted.unit(f"{profile}-gateway.service", _GATEWAY)
        booted.unit(TUNNEL, _TUNNEL)
        programs = Path(f"/proc/{booted.init}/root/usr/local/bin")
        tailscale = stand_in_programs.install(programs, "tailscale")
        yield Appliance(booted, near, far, tailscale)


class _Connection(http.client.HTTPSConnection):
    """A connection from a network, to a server whose certificate is its own."""

    def __init__(self, network: Network, host: str, port: int) -> None:
        super().__init__(host, port, timeout=_TIMEOUT_S)
        self._network = network

    def connect(self) -> None:
        plain = self._network.socket(timeout_s=_TIMEOUT_S)
        plain.connect((self.host, self.port))
        self.sock = unverified().wrap_socket(plain)
