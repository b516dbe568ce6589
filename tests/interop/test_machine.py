"""The control CLI on a real Debian machine, with systemd, sshd, nftables and the kernel."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.test_service_network import RULES
from tests.support.appliances import Appliance
from tests.support.machine import Machine
from tests.support.waiting import wait_until

UNIT = "openclaw-gateway.service"
GATEWAY = "ExecStart=/usr/bin/python3 /opt/gateway.py\nType=notify"
# A gateway that reports that it is healthy.
ANSWERS = """
import os, socket
from http.server import BaseHTTPRequestHandler, HTTPServer
class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()
server = HTTPServer(("127.0.0.1", 8080), Answer)
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
server.serve_forever()
"""
# What a container does not have: its own clock, AppArmor and swap.
BEYOND_US = {"time-sync", "apparmor-enforcing", "zram-swap", "hardened-sysctls"}
AS_IT_CAME = f"""
systemctl kill --kill-whom=all --signal=KILL {UNIT} || true
systemctl disable --now {UNIT} platform-tunnel.service || true
umount --quiet /home /var/lib/platform || true
rm -rf /etc/systemd/system/{UNIT} /etc/systemd/system/{UNIT}.d /opt/gateway.py
rm -f /etc/systemd/system/platform-tunnel.service
rm -f /etc/platform/active-profile /etc/platform/secrets.env /etc/nftables.d/platform.nft
rm -f /etc/ssh/sshd_config.d/00-*.conf
[ ! -e /etc/passwd.was ] || mv /etc/passwd.was /etc/passwd
[ ! -e /run/away ] || mv /run/away /run/platform
nft flush ruleset
systemctl daemon-reload
systemctl reset-failed
"""


@pytest.fixture
def booted(shared: Appliance) -> Iterator[Machine]:
    """The machine as it comes from the image."""
    yield shared.machine
    shared.machine.run("sh", "-ec", AS_IT_CAME)


@pytest.fixture
def healthy_machine(booted: Machine) -> Machine:
    """A machine that is set up, and as healthy as a container can be."""
    booted.write("/etc/platform/active-profile", "openclaw\n")
    booted.write("/etc/platform/secrets.env", "OPENAI_API_KEY=sk-canary-0123456789\n", "0640")
    booted.write("/etc/ssh/sshd_config.d/00-platform.conf", "PasswordAuthentication no\n")
    booted.write("/etc/nftables.d/platform.nft", RULES)
    booted.write("/opt/gateway.py", ANSWERS)
    booted.unit(UNIT, GATEWAY)
    booted.run(
        *("sh", "-ec"),
        "chown root:agent /etc/platform/secrets.env; nft -f /etc/nftables.d/platform.nft;"
        f" systemctl enable --now {UNIT}",
    )
    return booted


def status(here: Machine) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(here.run("platformctl", "status", "--json"))
    return answer


def doctor(here: Machine) -> dict[str, tuple[str, str]]:
    """Kind and detail of every check."""
    done = here.call("platformctl", "doctor", "--json")
    assert done.stdout, done
    verdict = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1 if verdict["fails"] else 0, "")
    return {
        check["name"]: (check["outcome"]["kind"], check["outcome"]["detail"])
        for check in verdict["checks"]
    }


def set_up(here: Machine, service: str) -> None:
    """Make the gateway of the active profile such a service, and start it."""
    here.write("/etc/platform/active-profile", "openclaw\n")
    here.unit(UNIT, service)
    here.run("systemctl", "start", UNIT)


# status


def test_an_active_gateway_is_shown_with_its_uptime(booted: Machine) -> None:
    set_up(booted, "ExecStart=sleep infinity")
    begun = time.monotonic()
    answer = status(booted)
    assert answer["active_state"] == "active"
    first_s = answer["uptime_seconds"]
    wait_until(lambda: status(booted)["uptime_seconds"] != first_s)
    later_s = status(booted)["uptime_seconds"]
    assert first_s < later_s <= first_s + (time.monotonic() - begun) + 1


def test_a_unit_that_is_not_installed_is_inactive(booted: Machine) -> None:
    booted.write("/etc/platform/active-profile", "khoj\n")
    shown = {"unit": "khoj-gateway.service", "active_state": "inactive", "uptime_seconds": None}
    assert status(booted).items() >= shown.items()


@pytest.mark.parametrize(
    ("restart", "state", "kind"), [("no", "failed", "Fail"), ("always", "activating", "Warn")]
)
def test_a_gateway_that_does_not_start_is_shown_as_failed_or_activating(
    booted: Machine, restart: str, state: str, kind: str
) -> None:
    set_up(booted, f"ExecStart=false\nRestart={restart}\nRestartSec=60")
    wait_until(lambda: status(booted)["active_state"] == state)
    assert status(booted)["uptime_seconds"] is None
    assert doctor(booted)["active-profile-unit"] == (kind, f"{UNIT} is {state}")


def test_a_unit_with_a_drop_in_is_shown_as_one_unit(booted: Machine) -> None:
    booted.write(f"/etc/systemd/system/{UNIT}.d/10-more.conf", "[Service]\nEnvironment=A=B\n")
    set_up(booted, "ExecStart=sleep infinity")
    assert status(booted)["active_state"] == "active"


def test_the_tunnel_has_its_own_state(booted: Machine) -> None:
    booted.unit("platform-tunnel.service", "ExecStart=sleep infinity")
    booted.run("systemctl", "enable", "--now", "platform-tunnel.service")
    assert status(booted)["tunnel"] == {
        "unit": "platform-tunnel.service",
        "active_state": "active",
        "enabled": True,
    }


# doctor


def test_a_configured_machine_is_healthy(healthy_machine: Machine) -> None:
    found = doctor(healthy_machine)
    others = {name: kind for name, (kind, _) in found.items() if name not in BEYOND_US}
    assert {name: kind for name, kind in others.items() if kind != "Pass"} == {
        "fail2ban-running": "Skip",
        "clamav-healthy": "Skip",
    }
    fails = [name for name, (kind, _) in found.items() if kind == "Fail"]
    assert status(healthy_machine)["doctor_fails"] == len(fails)
    assert set(fails) <= BEYOND_US


TAKES_PASSWORDS = "for root from 192.168.0.2, sshd reports passwordauthentication yes"
PASSWORDS = ("ssh-key-only", TAKES_PASSWORDS)
NO_TABLE = ("firewall-default-drop", "the table inet platform does not drop input by default")
SSHD = "/etc/ssh/sshd_config.d/00-platform.conf"
MATCH = "Match Address 192.168.0.0/16\\nPasswordAuthentication yes\\n"
SMALL = "mount -t tmpfs -o size=64m{} tmpfs /home; mkdir /home/agent"
KEYS = "/etc/platform/secrets.env"
# How to harm the machine, the check that fails, and its detail.
HARM = {
    "as-debian-ships-it": (f"rm {SSHD}", *PASSWORDS),
    "a-drop-in-before-ours": (
        "echo PasswordAuthentication yes >/etc/ssh/sshd_config.d/00-a.conf",
        *PASSWORDS,
    ),
    "a-match-block-for-neighbours": (f"printf '{MATCH}' >>{SSHD}", *PASSWORDS),
    "sshd-cannot-read-it": (
        f"echo Nonsense yes >>{SSHD}",
        "ssh-key-only",
        f"sshd cannot read its configuration: {SSHD}: terminating, 1 bad configuration options",
    ),
    "no-table": ("nft delete table inet platform", *NO_TABLE),
    "a-table-that-accepts": ("nft chain inet platform input '{ policy accept; }'", *NO_TABLE),
    "a-rule-that-accepts": (
        "nft insert rule inet platform input accept",
        *("firewall-default-drop", "a rule of the chain input accepts everything"),
    ),
    "a-full-disk": (
        f"{SMALL.format('')}; head -c 20000000 /dev/zero >/home/agent/big",
        *("data-partition-free", "44.9 MiB free on /home/agent"),
    ),
    "a-disk-full-of-small-files": (
        f"{SMALL.format(',nr_inodes=3')}; touch /home/agent/a",
        *("data-partition-free", "/home/agent has no free inode, so no file can be created"),
    ),
    "read-only": (
        "mount -t tmpfs -o ro tmpfs /var/lib/platform",
        *("mounts-health", "/var/lib/platform is mounted read-only"),
    ),
    "keys-for-all": (
        f"chmod 0644 {KEYS}",
        *("secrets-mode", f"{KEYS} has the mode 0644, not 0640"),
    ),
    "keys-of-agent": (
        f"chown agent:agent {KEYS}",
        *("secrets-mode", f"{KEYS} belongs to agent:agent, not to root:agent"),
    ),
    "a-stopped-gateway": (f"systemctl stop {UNIT}", "active-profile-unit", f"{UNIT} is inactive"),
    "no-gateway": (
        f"rm /etc/systemd/system/{UNIT}; systemctl stop {UNIT}; systemctl daemon-reload",
        *("active-profile-unit", f"{UNIT} is not installed"),
    ),
    "a-gateway-that-hangs": (
        f"systemctl kill --kill-whom=all --signal=STOP {UNIT}",
        *("profile-health-endpoint", "http://127.0.0.1:8080/healthz did not answer within 2 s"),
    ),
    "no-agent": (
        f"sed -i.was /^agent:/d /etc/passwd; chgrp 0 {KEYS}",
        *("agent-user-exists", "there is no user called agent, under which the gateways run"),
    ),
}


@pytest.mark.parametrize(("harm", "check", "detail"), HARM.values(), ids=HARM)
def test_problems_are_found(harm: str, check: str, detail: str, healthy_machine: Machine) -> None:
    healthy_machine.run("sh", "-ec", harm)
    assert doctor(healthy_machine)[check] == ("Fail", detail)


def test_checks_that_need_root_are_skipped_for_others(healthy_machine: Machine) -> None:
    healthy_machine.run("mv", "/run/platform", "/run/away")
    done = healthy_machine.call(
        "setpriv", "--reuid=agent", "--clear-groups", "platformctl", "doctor", "--json"
    )
    found = {check["name"]: check["outcome"] for check in json.loads(done.stdout)["checks"]}
    for name in ("ssh-key-only", "firewall-default-drop"):
        assert found[name] == {"kind": "Skip", "detail": "only root can check this"}
    for name in ("records-readable", "secrets-mode", "active-profile-unit", "mounts-health"):
        assert found[name]["kind"] == "Pass"
    assert done.stderr == ""
    assert healthy_machine.call("test", "-e", "/run/platform").returncode == 1


def test_cli_01_a_systemd_that_does_not_answer_delays_status_and_doctor_only_for_seconds(
    healthy_machine: Machine,
) -> None:
    with healthy_machine.frozen():
        begun = time.monotonic()
        answer = status(healthy_machine)
        assert time.monotonic() - begun < 15
        found = doctor(healthy_machine)
        assert time.monotonic() - begun < 30
    assert (answer["unit"], answer["active_state"]) == (UNIT, "unavailable")
    assert found["active-profile-unit"] == ("Skip", "systemd does not answer")
