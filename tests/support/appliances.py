"""A running machine, and a second network from which it is tested."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support import stand_in_programs
from tests.support.first_boot import WIZARD_PORT, Device
from tests.support.machine import Machine, machine
from tests.support.network_namespaces import (
    Connection,
    Network,
    join,
    new_network,
    wait_for_port,
)
from tests.support.running import run
from tests.support.stand_in_programs import StandIn
from tests.support.wizard_visits import Visitor

NEAR, FAR = "10.99.0.1", "10.99.0.2"
NEAR_V6, FAR_V6 = "fd99::1", "fd99::2"
TUNNEL = "platform-tunnel.service"
PORT = 9443
_WIZARD = "platform-wizard.service"
# Records its environment, and keeps running.
_GATEWAY = """User=agent
EnvironmentFile=/etc/platform/secrets.env
RuntimeDirectory=%N
ExecStart=/bin/sh -c 'env >"$RUNTIME_DIRECTORY/seen"; exec sleep infinity'"""


@dataclass(frozen=True)
class Appliance:
    """A machine, its network, and the network connected to it."""

    machine: Machine
    near: Network
    far: Network
    console: Path | None = None

    @property
    def device(self) -> Device:
        """The device, as seen from outside."""
        return Device(self.machine.call, self.connect)

    def connect(self, port: int) -> http.client.HTTPConnection:
        """A connection from the other network that is not open yet; the wizard uses TLS."""
        return Connection(self.far, NEAR, port, tls=port == WIZARD_PORT)

    @property
    def root(self) -> Path:
        """The machine's files, as this process sees them."""
        return Path(f"/proc/{self.machine.init}/root")

    def read(self, path: str) -> str:
        """The content of one of its files."""
        return (self.root / path.lstrip("/")).read_text()

    def beside(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs in the other network; return the finished process."""
        network = f"--net=/proc/self/fd/{self.far.descriptor}"
        enter = ("nsenter", f"--target={self.machine.init}", "--mount", network, "--root")
        return run(*enter, "--wdns=/", "--", *argv, pass_fds=[self.far.descriptor])


def wire(near: Network, far: Network) -> None:
    """Connect the two networks."""
    join(far, near, {f"{FAR}/24": f"{NEAR}/24", f"{FAR_V6}/64": f"{NEAR_V6}/64"})


@contextlib.contextmanager
def appliance(
    tree: Path | None = None,
    *,
    programs: bool = True,
    clean: bool = False,
    console: Path | None = None,
    wired: bool = True,
) -> Iterator[Appliance]:
    """Boot a machine as `machine` does; it has no address until its network is connected."""
    with new_network() as near, new_network() as far:
        if wired:
            # Before the boot, so that services find their addresses.
            wire(near, far)
        with machine(
            tree, programs=programs, clean=clean, console=console, network=near
        ) as running:
            yield Appliance(running, near, far, console)


@dataclass(frozen=True)
class Image:
    """A machine from the image, set up by a wizard that runs as root.

    The units of its gateways and of its tunnel are small, and `tailscale` is a stand-in; everything
    else is Debian's own.
    """

    here: Appliance
    tailscale: StandIn

    def state(self, unit: str) -> tuple[str, str]:
        """The state of a unit: whether it is active, and whether it is enabled."""
        machine = self.here.machine
        return machine.states("is-active", unit)[0], machine.states("is-enabled", unit)[0]

    def seen_by(self, profile: str) -> dict[str, str]:
        """The environment with which a gateway was started."""
        lines = self.here.read(f"/run/{profile}-gateway/seen").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def serve(self) -> Visitor:
        """Start its wizard in production; return a visitor with a session in the other network."""
        machine, far = self.here.machine, self.here.far
        command = ("wizard-app", "serve", "--production", f"--bind=[::]:{PORT}")
        machine.run("systemd-run", "--quiet", f"--unit={_WIZARD}", *command)
        wait_for_port(far, NEAR, PORT)
        link = json.loads(machine.run("wizard-app", "launch-url", "--production", "--json"))
        visitor = Visitor(lambda: Connection(far, NEAR, PORT, tls=True))
        assert visitor.ask("/?" + link["url"].partition("?")[2]).status == 302
        return visitor

    def reset_and_serve(self) -> Visitor:
        """Restart its wizard without any answers; return a visitor."""
        self.here.machine.run("systemctl", "stop", _WIZARD)
        self.here.machine.run("rm", "/var/lib/platform/wizard-state.json")
        return self.serve()


@contextlib.contextmanager
def image() -> Iterator[Image]:
    """A machine without our services that is not set up; it is removed when the block ends."""
    with appliance() as here:
        for user in ("agent", "platform"):
            here.machine.run("useradd", "--system", "--create-home", "--shell=/bin/sh", user)
        for profile in ("hermes", "khoj", "openclaw"):
            here.machine.unit(f"{profile}-gateway.service", _GATEWAY)
        here.machine.unit(TUNNEL, "ExecStart=sleep infinity")
        programs = here.root / "usr/local/bin"
        yield Image(here, stand_in_programs.install(programs, "tailscale"))
