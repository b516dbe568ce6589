"""The firewall of a device that was set up, in force in the kernel, tried from a second network.

The machine has no names of protocols and services (no netbase), as a small system.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest

from tests.support.appliances import FAR, FAR_V6, NEAR, NEAR_V6, PORT, Appliance, appliance
from tests.support.network_namespaces import wait_for_port
from tests.support.wizard_visits import Fields

FORMS: dict[str, Fields] = {
    "system": [("hostname", "kitchen"), ("timezone", "Europe/Berlin")],
    "profile": [("profile", "openclaw")],
    "provider": [("provider", "openai"), ("api_key", "sk-1"), ("skip_validation", "1")],
    "channels": [("channels", "telegram"), ("channels", "irc")],
    "ssh": [],
    "mesh-vpn": [("skip", "1")],
    "tunnel": [("choice", "skip")],
    "backup": [("kind", "skip")],
}
CHANNEL_TCP, CHANNEL_UDP, NOT_CHOSEN, SECOND_SSH = 5443, 5444, 6697, 2222
# Another profile in place of the one that is shipped, as none of those has such ports.
PROFILE = f"""[profile]
id = "openclaw"
display_name = "OpenClaw"
[paths]
data_dir = "~/.openclaw"
[service]
unit = "openclaw-gateway.service"
[health]
http_check = "http://127.0.0.1:8080/healthz"
[channels]
supported = ["telegram", "irc", "line"]
[channels.ports]
telegram = ["{CHANNEL_TCP}/tcp", "{CHANNEL_UDP}/udp"]
irc = ["{CHANNEL_TCP}/tcp"]
line = ["{NOT_CHOSEN}/tcp"]
"""
OPEN_TCP = (22, SECOND_SSH, 8088, 8089, PORT, CHANNEL_TCP)
CLOSED_TCP = (NOT_CHOSEN, 8080, 53)
CLOSED_UDP = (68, 546, 53, CHANNEL_TCP)
MDNS, MDNS_V6, EVERYBODY = "224.0.0.251", "ff02::fb", "255.255.255.255"
# Says back what it is told, on every port that is tried; those of sshd and the wizard are theirs.
LISTENER = f"""
import selectors, socket, struct
chosen = selectors.DefaultSelector()
for port in {(8088, 8089, CHANNEL_TCP, *CLOSED_TCP)}:
    server = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    chosen.register(server, selectors.EVENT_READ)
for port in {(68, 546, 5353, CHANNEL_UDP, *CLOSED_UDP[2:])}:
    for family, everybody in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        found = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            cable = struct.pack("@I", socket.if_nametoindex("cable"))
            group = socket.inet_pton(family, "{MDNS_V6}") + cable
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        else:
            group = socket.inet_aton("{MDNS}") + socket.inet_aton("{NEAR}")
            found.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        found.bind((everybody, port))
        chosen.register(found, selectors.EVENT_READ)
kept = []
while True:
    for key, _ in chosen.select():
        if key.fileobj.type == socket.SOCK_STREAM:
            kept.append(key.fileobj.accept())
        else:
            told, sender = key.fileobj.recvfrom(64)
            key.fileobj.sendto(told, sender)
"""
ANOTHER_TABLE = """table inet another {
  chain input {
    type filter hook input priority 10;
  }
}
"""
# How long nothing has to come for it to count as dropped.
SILENCE_S = 0.6


@pytest.fixture(scope="module")
def here() -> Iterator[Appliance]:
    """A machine that was set up, on which somebody listens on every port that is tried."""
    with appliance() as new:
        machine = new.machine
        assert not (new.root / "etc/protocols").exists()
        machine.write("/etc/platform/profiles/openclaw.toml", PROFILE)
        machine.write("/etc/ssh/sshd_config.d/ports.conf", f"Port 22\nPort {SECOND_SSH}\n")
        machine.run("systemctl", "restart", "ssh.service")
        machine.run("nft", "-f", "-", stdin=ANOTHER_TABLE)
        machine.write("/opt/listener.py", LISTENER)
        machine.run("systemd-run", "--quiet", "--unit=listener", "python3", "/opt/listener.py")
        for port in (NOT_CHOSEN, 8080):
            wait_for_port(new.far, NEAR, port)
        new.far.ip("route", "add", "224.0.0.0/4", "dev", "cable")
        new.far.ip("route", "add", f"{EVERYBODY}/32", "dev", "cable")
        # Before, nothing keeps anybody out.
        assert all(new.far.connects(NEAR, port) for port in (*OPEN_TCP[:4], *CLOSED_TCP))
        assert new.far.asks(NEAR, 53)
        new.serve().set_up(FORMS)
        yield new


@pytest.mark.parametrize("address", [NEAR, NEAR_V6])
@pytest.mark.parametrize("port", OPEN_TCP)
def test_every_way_in_and_every_chosen_channel_is_let_in(
    here: Appliance, address: str, port: int
) -> None:
    assert here.far.connects(address, port)


@pytest.mark.parametrize("address", [NEAR, NEAR_V6])
@pytest.mark.parametrize("port", CLOSED_TCP)
def test_nobody_gets_an_answer_from_another_port(here: Appliance, address: str, port: int) -> None:
    assert not here.far.connects(address, port, SILENCE_S)


@pytest.mark.parametrize("address", [NEAR, NEAR_V6])
def test_a_datagram_reaches_a_chosen_channel_and_nothing_else(
    here: Appliance, address: str
) -> None:
    assert here.far.asks(address, CHANNEL_UDP)
    for port in CLOSED_UDP:
        assert not here.far.asks(address, port, timeout_s=SILENCE_S), port


@pytest.mark.parametrize("address", [NEAR, NEAR_V6])
def test_an_echo_is_answered(here: Appliance, address: str) -> None:
    assert here.far.pings(address)


def test_neighbours_find_it_again_once_they_forgot_it(here: Appliance) -> None:
    for address, version in ((NEAR, "-4"), (NEAR_V6, "-6")):
        here.far.ip(version, "neighbour", "flush", "dev", "cable")
        here.near.ip(version, "neighbour", "flush", "dev", "cable")
        assert here.far.connects(address, 22)


@pytest.mark.parametrize(
    ("address", "port", "from_port"),
    [
        pytest.param(NEAR, 68, 67, id="dhcp"),
        pytest.param(EVERYBODY, 68, 67, id="dhcp-to-everybody"),
        pytest.param(NEAR_V6, 546, 547, id="dhcp-of-ipv6"),
        pytest.param(NEAR, 5353, 0, id="mdns"),
        pytest.param(MDNS, 5353, 5353, id="mdns-to-everybody"),
        pytest.param(f"{MDNS_V6}%cable", 5353, 5353, id="mdns-of-ipv6-to-everybody"),
    ],
)
def test_addresses_and_local_names_can_be_had(
    here: Appliance, address: str, port: int, from_port: int
) -> None:
    assert here.far.asks(address, port, from_port=from_port)


@pytest.mark.parametrize("address", [FAR, FAR_V6])
def test_what_it_asks_for_itself_is_answered(here: Appliance, address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with (
        here.far.socket(family=family, bound=(address, 7000)) as server,
        here.near.socket(family=family) as client,
    ):
        server.listen()
        client.connect((address, 7000))
        taken, _ = server.accept()
        with taken:
            taken.sendall(b"hello")
            assert client.recv(64) == b"hello"


def test_it_reaches_itself_on_every_port(here: Appliance) -> None:
    for port in CLOSED_TCP:
        assert here.near.connects("127.0.0.1", port)
        assert here.near.connects("::1", port)
        assert here.near.connects(NEAR, port)


def rules(here: Appliance) -> str:
    return here.machine.run("nft", "list", "ruleset")


def test_loading_it_again_changes_nothing_and_leaves_the_rules_of_others(here: Appliance) -> None:
    before = rules(here)
    assert "table inet another" in before
    for _ in range(2):
        here.machine.run("nft", "-f", "/etc/nftables.d/platform.nft")
    assert rules(here) == before
    assert here.far.connects(NEAR, 22)


def test_nothing_in_it_needs_a_name_that_a_small_system_does_not_have(here: Appliance) -> None:
    text = re.sub(r"#.*", "", here.read("/etc/nftables.d/platform.nft"))
    words = set(re.findall(r"[a-z0-9-]+", text))
    assert not words & {"icmp", "icmpv6", "ipv6-icmp", "ssh", "bootpc", "bootps", "mdns", "http"}
