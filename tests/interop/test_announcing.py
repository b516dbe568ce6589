"""What a device with avahi says of itself in its network, asked by mDNS from beside it."""

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
# Questions by multicast DNS (RFC 6762), as a phone in the same network asks them.
GROUP = ("224.0.0.251", 5353)
TYPES = {"A": 1, "PTR": 12, "SRV": 33}
WAIT_S = 0.3
HEADER = struct.Struct("!6H")
RECORD = struct.Struct("!HHIH")


def ask(network: Network, address: str, asked: str, kind: str) -> set[str]:
    """What those in the network of `address`, which is ours, say that `asked` is."""
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
    """The parts of a name; what stands before `._` is one, whatever it is."""
    first, separator, rest = whole.partition("._")
    return [first, *f"_{rest}".split(".")] if separator else whole.split(".")


def records(message: bytes) -> Iterator[tuple[str, int, str]]:
    """What was answered: a name, its type, and an address, a name, or `HOST:PORT`."""
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
    """A name and the place behind it; a part of it may be elsewhere in the message."""
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
    """A machine with avahi on it, and who asks beside it."""

    here: Appliance

    @property
    def run(self) -> Callable[..., str]:
        return self.here.machine.run

    def says(self, name: str, kind: str, *answers: str) -> None:
        """Return when this is the answer, and no other."""
        wait_until(lambda: ask(self.here.far, FAR, name, kind) == set(answers))


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    """A device that was just started, with avahi, and with a gateway that does nothing."""
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
def test_a_device_is_found_by_its_old_name_and_by_the_one_that_the_wizard_gives_it(
    device: Device,
) -> None:
    name = device.run("hostname").strip()
    device.says(WIZARDS, "PTR", f"Setup of {name}.{WIZARDS}")
    device.says(DASHBOARDS, "PTR", f"Dashboard of {name}.{DASHBOARDS}")
    device.says(f"Setup of {name}.{WIZARDS}", "SRV", f"{name}.local:8088")
    device.says(f"Dashboard of {name}.{DASHBOARDS}", "SRV", f"{name}.local:8089")
    device.says(f"{name}.local", "A", NEAR)
    # The wizard gives it another name, and a firewall.
    device.here.device.visitor().set_up(SIMPLE)
    assert "table inet platform" in device.run("nft", "list", "ruleset")
    device.says("kitchen.local", "A", NEAR)
    device.says(f"{name}.local", "A")
    device.says(DASHBOARDS, "PTR", f"Dashboard of kitchen.{DASHBOARDS}")
    # The chat is still there, until the device is started anew.
    device.says(WIZARDS, "PTR", f"Setup of kitchen.{WIZARDS}")
    device.run("systemctl", "restart", "platform-wizard.service")
    device.says(WIZARDS, "PTR")
    device.says(DASHBOARDS, "PTR", f"Dashboard of kitchen.{DASHBOARDS}")
    assert "platform" not in device.run("systemctl", "--failed", "--plain")
    # As after a power cut.
    left = "/etc/avahi/services/platform-wizard.service"
    device.run("cp", "/etc/avahi/services/platform-pwa.service", left)
    device.run("systemd-tmpfiles", "--boot", "--remove", "platform.conf")
    device.says(DASHBOARDS, "PTR", f"Dashboard of kitchen.{DASHBOARDS}")
    assert device.here.machine.call("test", "-e", left).returncode == 1


@pytest.mark.long
def test_a_dashboard_that_is_stopped_is_not_announced(device: Device) -> None:
    shown = f"Dashboard of {device.run('hostname').strip()}.{DASHBOARDS}"
    device.run("systemctl", "start", "platform-pwa.service")
    device.says(DASHBOARDS, "PTR", shown)
    device.run("systemctl", "stop", "platform-pwa.socket", "platform-pwa.service")
    device.says(DASHBOARDS, "PTR")
    device.run("systemctl", "start", "platform-pwa.socket", "platform-pwa.service")
    device.says(DASHBOARDS, "PTR", shown)
    # Avahi was never shown half a file.
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
