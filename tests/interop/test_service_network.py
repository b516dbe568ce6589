"""The units of the tunnel and of the firewall, and who may log in, on a machine with systemd."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.support import cloudflared_program
from tests.support.machine import Machine, machine

TUNNEL, FIREWALL, DEBIANS = "platform-tunnel.service", "platform-firewall.service", "nftables"
SECRET = "CaNaRyCaNaRyCaNaRyCaNaRyCaNaRyCaNaRyCaNaRy="
ID = "6ff42ae2-765d-4adf-8112-31c55c1551ef"
CREDENTIALS = {"TunnelName": "kitchen", "TunnelID": ID, "TunnelSecret": SECRET}
FILE, CONFIG = "/etc/platform/tunnel/credentials.json", "/etc/platform/tunnel/config.yml"
GATEWAY = "http://127.0.0.1:8080"
RULES = """table inet platform
delete table inet platform
table inet platform {
  chain input {
    type filter hook input priority 0; policy drop;
    iif lo accept
    tcp dport { 22, 8088, 8089 } accept
  }
}
"""
LOGIN = (
    *("ssh", "-F", "none", "-i", "/etc/login_key", "-o", "BatchMode=yes"),
    *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "agent@127.0.0.1"),
)


@pytest.fixture(scope="module")
def booted() -> Iterator[Machine]:
    """A machine with our services and an active profile."""
    with machine() as one:
        one.run("platformctl", "services", "install")
        one.write("/etc/platform/active-profile", "openclaw\n")
        yield one


@pytest.fixture
def cloudflared(booted: Machine) -> Iterator[Machine]:
    """A machine with cloudflared, and a tunnel that runs in no test but this."""
    cloudflared_program.install(booted)
    yield booted
    booted.call("systemctl", "disable", "--now", TUNNEL)
    booted.run("rm", "-f", FILE, CONFIG)


def show(booted: Machine, unit: str, name: str) -> str:
    """What systemd knows of a unit."""
    return booted.run("systemctl", "show", "--value", f"--property={name}", unit).strip()


def test_a_quick_tunnel_leads_to_the_gateway(cloudflared: Machine) -> None:
    cloudflared.run("systemctl", "enable", "--now", TUNNEL)
    told = cloudflared_program.last_call(cloudflared, TUNNEL)
    assert told["argv"] == ["tunnel", "--no-autoupdate", "--url", GATEWAY]
    assert told["user"] != 0
    assert set(told["environ"]) == {"PATH", "LC_ALL"}


def test_tun_03_a_named_tunnel_has_its_credentials_in_a_file_and_nowhere_else(
    cloudflared: Machine,
) -> None:
    cloudflared.write(FILE, json.dumps(CREDENTIALS), mode="0600")
    cloudflared.run("systemctl", "start", TUNNEL)
    told = cloudflared_program.last_call(cloudflared, TUNNEL)
    assert (told["tunnel"], told["options"]["url"]) == ([ID], GATEWAY)
    assert told["keys"] == sorted(CREDENTIALS)
    assert SECRET not in json.dumps(told)
    assert SECRET not in cloudflared.run("systemctl", "show", TUNNEL)
    assert SECRET not in cloudflared.run("journalctl", "--no-pager")
    copy = told["options"]["credentials-file"]
    assert cloudflared.call("runuser", "-u", "platform", "--", "cat", copy).returncode != 0


def test_a_tunnel_changes_from_quick_to_named_and_back(cloudflared: Machine) -> None:
    for credentials in (None, CREDENTIALS, None):
        cloudflared.run("rm", "-f", FILE)
        if credentials:
            cloudflared.write(FILE, json.dumps(credentials), mode="0600")
        cloudflared.run("systemctl", "restart", TUNNEL)
        told = cloudflared_program.last_call(cloudflared, TUNNEL)
        assert told["tunnel"] == ([ID] if credentials else [])


def test_settings_of_the_operator_take_the_place_of_ours(cloudflared: Machine) -> None:
    config = f"tunnel: {ID}\ningress:\n  - service: http://127.0.0.1:1\n"
    cloudflared.write(CONFIG, config, mode="0600")
    cloudflared.write(FILE, json.dumps(CREDENTIALS), mode="0600")
    # These are another program's.
    cloudflared.write("/etc/cloudflared/config.yml", "url: http://127.0.0.1:8089\n")
    cloudflared.run("systemctl", "start", TUNNEL)
    told = cloudflared_program.last_call(cloudflared, TUNNEL)
    assert told["config"] == config
    assert "url" not in told["options"]
    assert told["keys"] == sorted(CREDENTIALS)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(f"rm {cloudflared_program.PLACE}", "cloudflared could not be", id="missing"),
        pytest.param(f"echo '{{' >{FILE}", "The credentials of the tunnel cannot", id="no-json"),
        pytest.param("mv /etc/platform/active-profile /run/a", "No profile is active", id="none"),
    ],
)
def test_what_only_a_person_can_mend_fails_once_and_says_why(
    cloudflared: Machine, spoil: str, said: str
) -> None:
    cloudflared.run("sh", "-c", spoil)
    try:
        assert cloudflared.call("systemctl", "start", TUNNEL).returncode != 0
        assert (
            show(cloudflared, TUNNEL, "ActiveState"),
            show(cloudflared, TUNNEL, "SubState"),
        ) == (
            "failed",
            "failed",
        )
        assert show(cloudflared, TUNNEL, "ExecMainStatus") == "65"
        assert f"error: {said}" in cloudflared.call("systemctl", "status", TUNNEL).stdout
    finally:
        cloudflared.call("mv", "/run/a", "/etc/platform/active-profile")
        cloudflared.run("systemctl", "reset-failed", TUNNEL)


@pytest.fixture
def rules(booted: Machine) -> Iterator[Machine]:
    """A machine with rules, which are in force."""
    booted.write("/etc/nftables.d/platform.nft", RULES)
    booted.run("systemctl", "start", FIREWALL)
    yield booted
    booted.run("systemctl", "stop", FIREWALL, DEBIANS)
    booted.call("nft", "flush", "ruleset")
    booted.run("rm", "/etc/nftables.d/platform.nft")


def in_force(booted: Machine) -> bool:
    """Whether input is dropped by our rules."""
    return "policy drop" in booted.call("nft", "list", "table", "inet", "platform").stdout


@pytest.mark.parametrize("verbs", [("start",), ("start", "restart"), ("start", "reload")])
def test_the_rules_outlast_debians_own_service(rules: Machine, verbs: tuple[str, ...]) -> None:
    for verb in verbs:
        rules.run("systemctl", verb, DEBIANS)
        wait_until_in_force(rules)
    assert "table inet filter" in rules.run("nft", "list", "tables")


def test_to_stop_a_firewall_opens_no_device(rules: Machine) -> None:
    rules.run("systemctl", "start", DEBIANS)
    rules.run("systemctl", "stop", DEBIANS)
    wait_until_in_force(rules)
    rules.run("systemctl", "stop", FIREWALL)
    assert in_force(rules)


def wait_until_in_force(booted: Machine) -> None:
    """Return once our rules are loaded again."""
    deadline = time.monotonic() + 30
    while not in_force(booted) or show(booted, FIREWALL, "ActiveState") != "active":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_without_nft_the_firewall_fails_and_says_so(rules: Machine) -> None:
    rules.run("systemctl", "stop", FIREWALL)
    rules.run("mv", "/usr/sbin/nft", "/usr/sbin/nft.away")
    try:
        assert rules.call("systemctl", "start", FIREWALL).returncode != 0
        said = rules.call("systemctl", "status", "--no-pager", FIREWALL).stdout
        assert "/usr/sbin/nft: No such file or directory" in said
        assert FIREWALL in rules.run("systemctl", "list-units", "--failed", "--plain")
    finally:
        rules.run("mv", "/usr/sbin/nft.away", "/usr/sbin/nft")
        rules.run("systemctl", "reset-failed")


def test_before_the_set_up_there_is_nothing_to_load(booted: Machine) -> None:
    booted.run("systemctl", "start", FIREWALL)
    assert show(booted, FIREWALL, "ConditionResult") == "no"
    assert show(booted, FIREWALL, "ActiveState") == "inactive"


def test_agent_logs_in_with_a_key_and_with_nothing_else(booted: Machine) -> None:
    booted.run("ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", "/etc/login_key")
    folder = "/home/agent/.ssh"
    booted.run("install", "-d", "-m0700", "-oagent", "-gagent", folder)
    installed = ("install", "-m0600", "-oagent", "-gagent", "/etc/login_key.pub")
    booted.run(*installed, f"{folder}/authorized_keys")
    booted.run("systemctl", "restart", "ssh.service")
    # As the page has it: with what Debian ships, and without PAM after one command.
    assert booted.run(*LOGIN, "id", "-un") == "agent\n"
    booted.write("/etc/ssh/sshd_config.d/pam.conf", "UsePAM no\n")
    booted.run("systemctl", "restart", "ssh.service")
    assert booted.call(*LOGIN, "id", "-un").returncode != 0
    booted.run("usermod", "-p", "*", "agent")
    assert booted.run(*LOGIN, "id", "-un") == "agent\n"
    booted.run("rm", f"{folder}/authorized_keys")
    assert booted.call(*LOGIN, "id", "-un").returncode != 0
