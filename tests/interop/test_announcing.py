"""How a device with avahi announces itself in its network, asked by mDNS from that network."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.support.appliances import FAR, NEAR, Appliance, appliance
from tests.support.machine import writable_tree
from tests.support.network_namespaces import Network
from tests.support.waiting import wait_until
from tests.support.wizard_visits import SIMPLE

INSTALL_S = 300
DASHBOARDS, WIZARDS = "_http._tcp.local", "_https._tcp.local"
GATEWAY = "[Service]\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
# Multicast DNS queries (RFC 6762), as a phone in the same network sends them.
GROUP = ("224.0.0.251", 5353)
TYPES = {"A": 1, "PTR": 12, "SRV": 33}
WAIT_S = 0.3
HEADER = struct.Struct("!6H")
RECORD = struct.Struct("!HHIH")


def ask(network: Network, address: str, asked: str, kind: str) -> set[str]:
    """The answers to a query for `asked`, sent from our `address` in the device's network."""
    number = secrets.randbelow(1 << 16)
    encoded = b"".join(bytes([len(part)]) + part.encode() for part in labels(asked))
    question = HEADER.pack(number, 0, 1, 0, 0, 0) + encoded + b"\0"
    found = set()
    with network.socket(socket.SOCK_DGRAM, bound=(address, 0)) as asker:
        asker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        asker.sendto(question + struct.pack("!HH", TYPES[kind], 1), GROUP)
        deadline = time.monotonic() + WAIT_S
        with contextlib.suppress(TimeoutError):
            while (left_s := deadline - time.monotonic()) > 0:
                asker.settimeout(left_s)
                for answered, type_, value in records(asker.recv(9000)):
                    if (answered.lower(), type_) == (asked.lower(), TYPES[kind]):
                        found.add(value)
    return found


def labels(whole: str) -> list[str]:
    """The labels of a name; everything before `._` is one label."""
    first, separator, rest = whole.partition("._")
    return [first, *f"_{rest}".split(".")] if separator else whole.split(".")


def records(message: bytes) -> Iterator[tuple[str, int, str]]:
    """The records of a message: a name, its type, and an address, a name, or `HOST:PORT`."""
    _, _, questions, *counts = HEADER.unpack_from(message)
    place = HEADER.size
    for _ in range(questions):
        _, place = name(message, place)
        place += 4
    for _ in range(sum(counts)):
        found, place = name(message, place)
        kind, _, _, length = RECORD.unpack_from(message, place)
        place += RECORD.size
        yield found, kind, value_of(message, place, kind, length)
        place += length


def value_of(message: bytes, place: int, kind: int, length: int) -> str:
    if kind == TYPES["A"]:
        return socket.inet_ntoa(message[place : place + length])
    if kind == TYPES["PTR"]:
        return name(message, place)[0]
    if kind == TYPES["SRV"]:
        (port,) = struct.unpack_from("!H", message, place + 4)
        return f"{name(message, place + 6)[0]}:{port}"
    return ""


def name(message: bytes, place: int) -> tuple[str, int]:
    """Read a name, part of which may be elsewhere in the message; return it and the next offset."""
    parts = []
    after = 0
    while length := message[place]:
        if length >= 0xC0:
            after = after or place + 2
            place = struct.unpack_from("!H", message, place)[0] & 0x3FFF
            continue
        parts.append(message[place + 1 : place + 1 + length].decode())
        place += 1 + length
    return ".".join(parts), after or place + 1


class Device(NamedTuple):
    """A machine with avahi, asked from its network."""

    here: Appliance

    @property
    def run(self) -> Callable[..., str]:
        return self.here.machine.run

    def wait_for_answers(self, name: str, kind: str, *answers: str) -> None:
        """Wait until these are the only answers."""
        wait_until(lambda: ask(self.here.far, FAR, name, kind) == set(answers))


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    """A freshly booted device with avahi and a gateway that does nothing."""
    with writable_tree() as files:
        install = ("install", "-qq", "--yes", "--no-install-recommends", "avahi-daemon")
        for words in (("update", "-qq"), install):
            subprocess.run(
                ["chroot", files, "apt-get", *words],
                stdin=subprocess.DEVNULL,
                env={"PATH": os.defpath + ":/usr/sbin:/sbin", "DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                timeout=INSTALL_S,
                check=True,
            )
        (files / "etc/systemd/system/openclaw-gateway.service").write_text(GATEWAY)
        with appliance(files) as here:
            here.machine.run("platformctl", "services", "install", "--programs=/usr/local/bin")
            yield Device(here)


@pytest.mark.long
def test_a_device_is_found_by_its_old_name_and_then_by_the_name_from_the_wizard(
    device: Device,
) -> None:
    name = device.run("hostname").strip()
    device.wait_for_answers(WIZARDS, "PTR", f"Setup of {name}.{WIZARDS}")
    device.wait_for_answers(DASHBOARDS, "PTR", f"Dashboard of {name}.{DASHBOARDS}")
    device.wait_for_answers(f"Setup of {name}.{WIZARDS}", "SRV", f"{name}.local:8088")
    device.wait_for_answers(f"Dashboard of {name}.{DASHBOARDS}", "SRV", f"{name}.local:8089")
    device.wait_for_answers(f"{name}.local", "A", NEAR)
    # The wizard sets another name, and a firewall.
    device.here.device.visitor().set_up(SIMPLE)
    assert "table inet platform" in device.run("nft", "list", "ruleset")
    device.wait_for_answers("kitchen.local", "A", NEAR)
    device.wait_for_answers(f"{name}.local", "A")
    device.wait_for_answers(DASHBOARDS, "PTR", f"Dashboard of kitchen.{DASHBOARDS}")
    # The chat is announced until the wizard is restarted.
    device.wait_for_answers(WIZARDS, "PTR", f"Setup of kitchen.{WIZARDS}")
    device.run("systemctl", "restart", "platform-wizard.service")
    device.wait_for_answers(WIZARDS, "PTR")
    device.wait_for_answers(DASHBOARDS, "PTR", f"Dashboard of kitchen.{DASHBOARDS}")
    assert "platform" not in device.run("systemctl", "--failed", "--plain")
    # As after a power cut.
    left = "/etc/avahi/services/platform-wizard.service"
    device.run("cp", "/etc/avahi/services/platform-pwa.service", left)
    device.run("systemd-tmpfiles", "--boot", "--remove", "platform.conf")
    device.wait_for_answers(DASHBOARDS, "PTR", f"Dashboard of kitchen.{DASHBOARDS}")
    assert device.here.machine.call("test", "-e", left).returncode == 1


@pytest.mark.long
def test_a_stopped_dashboard_is_not_announced(device: Device) -> None:
    shown = f"Dashboard of {device.run('hostname').strip()}.{DASHBOARDS}"
    device.run("systemctl", "start", "platform-pwa.service")
    device.wait_for_answers(DASHBOARDS, "PTR", shown)
    device.run("systemctl", "stop", "platform-pwa.socket", "platform-pwa.service")
    device.wait_for_answers(DASHBOARDS, "PTR")
    device.run("systemctl", "start", "platform-pwa.socket", "platform-pwa.service")
    device.wait_for_answers(DASHBOARDS, "PTR", shown)
    # Avahi never read an incomplete file.
    assert "Failed to load" not in device.run("journalctl", "--no-pager", "--all")


def test_without_avahi_or_with_a_read_only_etc_nothing_fails(shared: Appliance) -> None:
    bare, folder = shared.machine, "/etc/avahi/services"
    units = ("platform-wizard-mdns.service", "platform-pwa-mdns.service")
    bare.run("systemctl", "restart", "platform-wizard.service", "platform-pwa.service", *units)
    assert bare.states("is-active", *units, "platform-mdns-name.path") == ["inactive"] * 3
    bare.run("mkdir", "--parents", folder)
    bare.run("mount", "--bind", folder, folder)
    try:
        bare.run("mount", "-o", "remount,ro,bind", folder)
        bare.run("systemctl", "restart", *units)
        assert bare.states("is-active", *units) == ["inactive"] * 2
        assert "platform" not in bare.run("systemctl", "--failed", "--plain")
    finally:
        bare.run("umount", folder)
        bare.run("rm", "--recursive", "/etc/avahi")
