"""What a device with avahi says of itself in its network, asked by mDNS from beside it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.machine import Machine, machine, writable_tree
from tests.support.mdns import ask
from tests.support.network_namespaces import Network, join, new_network
from tests.support.waiting import wait_until
from tests.support.web_servers import unverified
from tests.support.wizard_visits import Fields, Visitor

LONG_S = 40
INSTALL_S = 300
NEAR, FAR = "10.99.0.1", "10.99.0.2"
DASHBOARDS, WIZARDS = "_http._tcp.local", "_https._tcp.local"
SET_UP = "/etc/platform/setup-complete"
GATEWAY = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
FORMS: Mapping[str, Fields] = {
    "system": [("hostname", "kitchen"), ("timezone", "Europe/Berlin")],
    "profile": [("profile", "openclaw")],
    "provider": [("provider", "openrouter"), ("api_key", "sk-or-x"), ("skip_validation", "1")],
    "channels": [],
    "ssh": [],
    "mesh-vpn": [("skip", "1")],
    "tunnel": [("choice", "skip")],
    "backup": [("kind", "skip")],
}


@dataclass(frozen=True)
class Device:
    """A machine with avahi on it, and who asks beside it."""

    machine: Machine
    beside: Network

    def ask(self, name: str, kind: str) -> set[str]:
        return ask(self.beside, FAR, name, kind)

    def says(self, name: str, kind: str, *answers: str) -> None:
        """Return when this is the answer, and no other."""
        wait_until(lambda: self.ask(name, kind) == set(answers))

    def visitor(self) -> Visitor:
        told = json.loads(self.machine.run("wizard-app", "launch-url", "--production", "--json"))
        found = Visitor(lambda: _Connection(self.beside))
        assert found.ask("/?" + told["url"].partition("?")[2]).status == 302
        return found


class _Connection(http.client.HTTPSConnection):
    """A connection from beside the device to its wizard."""

    def __init__(self, network: Network) -> None:
        super().__init__(NEAR, 8088, timeout=LONG_S)
        self._network = network

    def connect(self) -> None:
        plain = self._network.socket(timeout_s=LONG_S)
        plain.connect((self.host, self.port))
        self.sock = unverified().wrap_socket(plain)


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    """The files of a machine with avahi, and with a gateway that does nothing."""
    with writable_tree() as files:
        for command in (
            ("apt-get", "update", "-qq"),
            ("apt-get", "install", "-qq", "--yes", "--no-install-recommends", "avahi-daemon"),
        ):
            done = subprocess.run(
                ["chroot", files, *command],
                stdin=subprocess.DEVNULL,
                env={"PATH": os.defpath + ":/usr/sbin:/sbin", "DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                text=True,
                timeout=INSTALL_S,
                check=False,
            )
            assert done.returncode == 0, done
        (files / "etc/systemd/system/openclaw-gateway.service").write_text(GATEWAY)
        yield files


@pytest.fixture(scope="module")
def device(tree: Path) -> Iterator[Device]:
    """A device that was just started."""
    with new_network() as near, new_network() as far:
        join(far, near, {f"{FAR}/24": f"{NEAR}/24"})
        with machine(tree, network=near) as here:
            here.run("platformctl", "services", "install", "--programs=/usr/local/bin")
            yield Device(here, far)


def test_a_device_is_found_by_its_old_name_and_by_the_one_that_the_wizard_gives_it(
    device: Device,
) -> None:
    name = device.machine.run("hostname").strip()
    device.says(WIZARDS, "PTR", f"Setup of {name}.{WIZARDS}")
    device.says(DASHBOARDS, "PTR", f"Dashboard of {name}.{DASHBOARDS}")
    device.says(f"Setup of {name}.{WIZARDS}", "SRV", f"{name}.local:8088")
    device.says(f"Dashboard of {name}.{DASHBOARDS}", "SRV", f"{name}.local:8089")
    device.says(f"{name}.local", "A", NEAR)
    # The wizard gives it another name, and a firewall.
    visitor = device.visitor()
    visitor.answer(FORMS)
    done = visitor.apply()
    assert (done.status, done.location) == (302, "/wizard/done"), done.body
    assert "table inet platform" in device.machine.run("nft", "list", "ruleset")
    device.says("kitchen.local", "A", NEAR)
    device.says(f"{name}.local", "A")
    device.says(DASHBOARDS, "PTR", f"Dashboard of kitchen.{DASHBOARDS}")
    # The chat is still there, until the device is started anew.
    device.says(WIZARDS, "PTR", f"Setup of kitchen.{WIZARDS}")
    device.machine.run("systemctl", "restart", "platform-wizard.service")
    device.says(WIZARDS, "PTR")
    device.says(DASHBOARDS, "PTR", f"Dashboard of kitchen.{DASHBOARDS}")
    assert "platform" not in device.machine.run("systemctl", "--failed", "--plain")
    # As after a power cut.
    left = "/etc/avahi/services/platform-wizard.service"
    device.machine.run("cp", "/etc/avahi/services/platform-pwa.service", left)
    device.machine.run("systemd-tmpfiles", "--boot", "--remove", "platform.conf")
    device.says(DASHBOARDS, "PTR", f"Dashboard of kitchen.{DASHBOARDS}")
    assert device.machine.call("test", "-e", left).returncode == 1


def test_a_dashboard_that_is_stopped_is_not_announced(device: Device) -> None:
    device.machine.run("systemctl", "start", "platform-pwa.service")
    wait_until(lambda: len(device.ask(DASHBOARDS, "PTR")) == 1)
    device.machine.run("systemctl", "stop", "platform-pwa.socket", "platform-pwa.service")
    device.says(DASHBOARDS, "PTR")
    device.machine.run("systemctl", "start", "platform-pwa.socket", "platform-pwa.service")
    wait_until(lambda: len(device.ask(DASHBOARDS, "PTR")) == 1)


def test_avahi_is_never_shown_half_a_file(device: Device) -> None:
    assert "Failed to load" not in device.machine.run("journalctl", "--no-pager", "--all")


def test_without_avahi_or_with_a_read_only_etc_nothing_fails() -> None:
    with machine() as bare:
        bare.run("platformctl", "services", "install", "--programs=/usr/local/bin")
        bare.run("hostnamectl", "set-hostname", "--static", "kitchen")
        units = ("platform-wizard-mdns.service", "platform-pwa-mdns.service")
        bare.run("systemctl", "restart", "platform-wizard.service", "platform-pwa.service", *units)
        states = bare.call("systemctl", "is-active", *units, "platform-mdns-name.path").stdout
        assert states.split() == ["inactive"] * 3
        bare.run("mkdir", "--parents", "/etc/avahi/services")
        bare.run("mount", "--bind", "/etc/avahi/services", "/etc/avahi/services")
        bare.run("mount", "-o", "remount,ro,bind", "/etc/avahi/services")
        bare.run("systemctl", "restart", *units)
        assert bare.call("systemctl", "is-active", *units).stdout.split() == ["inactive"] * 2
        assert "platform" not in bare.run("systemctl", "--failed", "--plain")
