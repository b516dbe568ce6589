"""The units of the tunnel and of the firewall, and SSH logins, on a machine with systemd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.appliances import TUNNEL, Appliance
from tests.support.machine import Machine
from tests.support.waiting import wait_until

FIREWALL, DEBIANS = "platform-firewall.service", "nftables"
RULES_FILE = "/etc/nftables.d/platform.nft"
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
PAM = "/etc/ssh/sshd_config.d/pam.conf"
LOGIN = (
    *("ssh", "-F", "none", "-i", "/etc/login_key", "-o", "BatchMode=yes"),
    *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "agent@127.0.0.1"),
)


CLOUDFLARED = "/usr/local/bin/cloudflared"
# A stand-in with the command line of the real program. It prints its input as one line of JSON,
# says that it is connected, and keeps running. It refuses what the real one refuses: unknown
# options, and options in the wrong place.
STAND_IN = """#!/usr/bin/python3 -I
import json, os, pathlib, signal, socket, sys

def leave(words):
    sys.exit(f"Incorrect Usage: {words}")

# An option of `tunnel` may stand before `run`, too; those of `run` are the ones to be connected.
TUNNEL = {"no-autoupdate": False, "config": True, "url": True}
RUN = {"credentials-file": True, "url": True}

def taken(words, known):
    options = {}
    while words and words[0].startswith("-"):
        name, has_value, value = words.pop(0).lstrip("-").partition("=")
        if name not in known:
            leave(f"flag provided but not defined: -{name}")
        options[name] = (value if has_value else words.pop(0)) if known[name] else True
    return options

words = sys.argv[1:]
if not words or words.pop(0) != "tunnel":
    leave("no such command")
options = taken(words, TUNNEL)
named = bool(words) and words.pop(0) == "run"
if named:
    options |= taken(words, RUN)
if words[1:] or (words and not named):
    leave("too many arguments")
given = options.get("config")
config = pathlib.Path(given).read_text() if given else ""
if named and not words and "tunnel:" not in config:
    leave('"cloudflared tunnel run" requires the ID or name of the tunnel to run')
if named and not given and "credentials-file" not in options:
    leave("cannot determine default origin certificate path")
file = options.get("credentials-file")
credentials = json.loads(pathlib.Path(file).read_text()) if file else {}
environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
told = {"argv": sys.argv[1:], "options": options, "tunnel": words, "config": config}
told |= {"environ": environment, "user": os.getuid(), "keys": sorted(credentials)}
print(json.dumps(told), flush=True)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as service:
    service.connect(os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1))
    service.send(b"READY=1")
signal.pause()
"""


@pytest.fixture
def booted(shared: Appliance) -> Iterator[Machine]:
    """A machine with our services and an active profile."""
    shared.machine.write("/etc/platform/active-profile", "openclaw\n")
    yield shared.machine
    shared.machine.run("rm", "/etc/platform/active-profile")


@pytest.fixture
def cloudflared(booted: Machine) -> Iterator[Machine]:
    """A machine with cloudflared, and a tunnel that only runs during this test."""
    booted.write(CLOUDFLARED, STAND_IN, mode="0755")
    yield booted
    booted.call("systemctl", "disable", "--now", TUNNEL)
    booted.run("rm", "-rf", FILE, CONFIG, CLOUDFLARED, "/etc/cloudflared")


def unit_status(machine: Machine, unit: str) -> str:
    """The output of `systemctl status` for a unit, with the end of its log."""
    return machine.call("systemctl", "status", "--no-pager", unit).stdout


def last_call(machine: Machine) -> dict[str, Any]:
    """The input of cloudflared at the last start of the tunnel."""
    said = machine.log("--output=cat", f"--unit={TUNNEL}")
    call: dict[str, Any] = json.loads([line for line in said.splitlines() if line[0] == "{"][-1])
    return call


def test_tun_03_a_named_tunnel_has_its_credentials_in_a_file_and_nowhere_else(
    cloudflared: Machine,
) -> None:
    cloudflared.write(FILE, json.dumps(CREDENTIALS), mode="0600")
    cloudflared.run("systemctl", "start", TUNNEL)
    told = last_call(cloudflared)
    assert (told["tunnel"], told["options"]["url"]) == ([ID], GATEWAY)
    assert told["keys"] == sorted(CREDENTIALS)
    shown = cloudflared.run("systemctl", "show", TUNNEL) + cloudflared.log()
    assert SECRET not in json.dumps(told) + shown
    copy = told["options"]["credentials-file"]
    assert cloudflared.call("runuser", "-u", "platform", "--", "cat", copy).returncode != 0


def test_a_tunnel_changes_from_quick_to_named_and_back(cloudflared: Machine) -> None:
    cloudflared.run("systemctl", "enable", TUNNEL)
    for credentials in (None, CREDENTIALS, None):
        cloudflared.run("rm", "-f", FILE)
        if credentials:
            cloudflared.write(FILE, json.dumps(credentials), mode="0600")
        cloudflared.run("systemctl", "restart", TUNNEL)
        told = last_call(cloudflared)
        assert told["tunnel"] == ([ID] if credentials else [])
    assert told["argv"] == ["tunnel", "--no-autoupdate", "--url", GATEWAY]
    assert told["user"] != 0
    assert set(told["environ"]) == {"PATH", "LC_ALL"}


def test_settings_of_the_operator_replace_ours(cloudflared: Machine) -> None:
    config = f"tunnel: {ID}\ningress:\n  - service: http://127.0.0.1:1\n"
    cloudflared.write(CONFIG, config, mode="0600")
    cloudflared.write(FILE, json.dumps(CREDENTIALS), mode="0600")
    # These belong to another program.
    cloudflared.write("/etc/cloudflared/config.yml", "url: http://127.0.0.1:8089\n")
    cloudflared.run("systemctl", "start", TUNNEL)
    told = last_call(cloudflared)
    assert told["config"] == config
    assert "url" not in told["options"]
    assert told["keys"] == sorted(CREDENTIALS)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(f"rm {CLOUDFLARED}", "cloudflared could not be", id="missing"),
        pytest.param(
            f"echo '{{' >{FILE}", "The credentials of the tunnel cannot", id="invalid-json"
        ),
        pytest.param(
            "mv /etc/platform/active-profile /run/a", "No profile is active", id="no-profile"
        ),
    ],
)
def test_an_error_that_only_a_person_can_fix_causes_no_restarts_and_is_logged(
    cloudflared: Machine, spoil: str, said: str
) -> None:
    cloudflared.run("sh", "-c", spoil)
    try:
        assert cloudflared.call("systemctl", "start", TUNNEL).returncode != 0
        for name in ("ActiveState", "SubState"):
            assert cloudflared.show(TUNNEL, name) == "failed"
        assert cloudflared.show(TUNNEL, "ExecMainStatus") == "65"
        wait_until(lambda: f"error: {said}" in unit_status(cloudflared, TUNNEL))
    finally:
        cloudflared.call("mv", "/run/a", "/etc/platform/active-profile")
        cloudflared.run("systemctl", "reset-failed", TUNNEL)


@pytest.fixture
def rules(booted: Machine) -> Iterator[Machine]:
    """A machine whose rules are loaded."""
    booted.write(RULES_FILE, RULES)
    booted.run("systemctl", "start", FIREWALL)
    yield booted
    booted.run("systemctl", "stop", FIREWALL, DEBIANS)
    booted.call("nft", "flush", "ruleset")
    booted.run("rm", RULES_FILE)


def rules_are_loaded(booted: Machine) -> bool:
    """Whether our rules are loaded and drop input."""
    dropped = "policy drop" in booted.call("nft", "list", "table", "inet", "platform").stdout
    return dropped and booted.show(FIREWALL, "ActiveState") == "active"


@pytest.mark.parametrize("verbs", [("start",), ("start", "restart"), ("start", "reload")])
def test_the_rules_survive_debians_own_service(rules: Machine, verbs: tuple[str, ...]) -> None:
    for verb in verbs:
        rules.run("systemctl", verb, DEBIANS)
        wait_until(lambda: rules_are_loaded(rules))
    assert "table inet filter" in rules.run("nft", "list", "tables")


def test_stopping_the_firewall_keeps_the_rules(rules: Machine) -> None:
    rules.run("systemctl", "start", DEBIANS)
    rules.run("systemctl", "stop", DEBIANS)
    wait_until(lambda: rules_are_loaded(rules))
    rules.run("systemctl", "stop", FIREWALL)
    assert "policy drop" in rules.run("nft", "list", "table", "inet", "platform")


def test_without_nft_the_firewall_fails_and_says_so(rules: Machine) -> None:
    missing = "/usr/sbin/nft: No such file or directory"
    rules.run("systemctl", "stop", FIREWALL)
    rules.run("mv", "/usr/sbin/nft", "/usr/sbin/nft.away")
    try:
        assert rules.call("systemctl", "start", FIREWALL).returncode != 0
        # The process failed and ended at once, perhaps before journald could look up its unit. So
        # the log is searched by the field that systemd itself sets.
        assert missing in rules.log("--output=cat", f"UNIT={FIREWALL}")
        assert FIREWALL in rules.run("systemctl", "list-units", "--failed", "--plain")
    finally:
        rules.run("mv", "/usr/sbin/nft.away", "/usr/sbin/nft")
        rules.run("systemctl", "reset-failed")


def test_before_setup_no_rules_are_loaded(booted: Machine) -> None:
    booted.run("systemctl", "start", FIREWALL)
    assert booted.show(FIREWALL, "ConditionResult") == "no"
    assert booted.show(FIREWALL, "ActiveState") == "inactive"


@pytest.fixture
def sshd(booted: Machine) -> Iterator[Machine]:
    """A machine on which agent has a key; afterwards the key and changes to sshd are removed."""
    folder, key = "/home/agent/.ssh", "/etc/login_key"
    booted.run("cp", "--preserve", "/etc/shadow", "/run/shadow")
    booted.run("ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", key)
    booted.run("install", "-d", "-m0700", "-oagent", "-gagent", folder)
    mine = ("-m0600", "-oagent", "-gagent")
    booted.run("install", *mine, f"{key}.pub", f"{folder}/authorized_keys")
    yield booted
    booted.run("mv", "/run/shadow", "/etc/shadow")
    booted.run("rm", "-rf", folder, key, f"{key}.pub", PAM)
    booted.run("systemctl", "restart", "ssh.service")


def test_agent_can_only_log_in_with_a_key(sshd: Machine) -> None:
    def logs_in() -> bool:
        return sshd.call(*LOGIN, "id", "-un").stdout == "agent\n"

    sshd.run("systemctl", "restart", "ssh.service")
    # As the page says: with Debian's settings, and without PAM after one command.
    assert logs_in()
    sshd.write(PAM, "UsePAM no\n")
    sshd.run("systemctl", "restart", "ssh.service")
    assert not logs_in()
    sshd.run("usermod", "-p", "*", "agent")
    assert logs_in()
    sshd.run("rm", "/home/agent/.ssh/authorized_keys")
    assert not logs_in()
