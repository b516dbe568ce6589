"""A device prepared as a folder, from its first boot on: what starts, and when."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.test_service_network import RULES
from tests.support.machine import Machine, install_programs, machine, writable_tree
from tests.support.releases import program

WIZARD = ("platform-wizard.socket", "platform-wizard.service")
ALWAYS = ("platform-pwa.socket", "platform-pwa.service", "platform-control.socket")
FIREWALL = "platform-firewall.service"
STATE = "/var/lib/platform/wizard-state.json"


@pytest.fixture
def tree() -> Iterator[Path]:
    """The files of a device with our services, before its first boot."""
    with writable_tree() as folder:
        install_programs(folder)
        where = ("--root", str(folder), "--programs", "/usr/local/bin")
        command = [program("platformctl"), "services", "install", *where]
        subprocess.run(command, capture_output=True, check=True)
        yield folder


def activated_at(booted: Machine, unit: str) -> int:
    """When a unit became active, on the monotonic clock."""
    return int(booted.show(unit, "ActiveEnterTimestampMonotonic"))


@pytest.mark.long
def test_the_wizard_starts_until_the_device_is_set_up_and_the_firewall_afterwards(
    tree: Path,
) -> None:
    with machine(tree) as booted:
        assert booted.states("is-active", *WIZARD, *ALWAYS) == ["active"] * 5
        # As the wizard leaves it after the first step.
        booted.write(STATE, '{"version": 2, "step": "profile", "answers": {}}', mode="0600")
        booted.run("chown", "platform:platform", STATE)
        booted.run("sync")
    with machine(tree) as booted:
        assert booted.states("is-active", *WIZARD, *ALWAYS) == ["active"] * 5
        assert booted.states("is-active", FIREWALL) == ["inactive"]
        booted.write("/etc/nftables.d/platform.nft", RULES)
        booted.write("/etc/platform/setup-complete", "")
        booted.run("systemctl", "enable", "nftables.service")
        booted.run("sync")
    with machine(tree) as booted:
        assert booted.states("is-active", *WIZARD) == ["inactive"] * 2
        assert booted.states("is-active", *ALWAYS) == ["active"] * 3
        assert booted.run("systemctl", "list-units", "--failed", "--plain", "--no-legend") == ""
        assert "policy drop" in booted.run("nft", "list", "table", "inet", "platform")
        assert 0 < activated_at(booted, "nftables.service") < activated_at(booted, FIREWALL)
        assert activated_at(booted, FIREWALL) < activated_at(booted, "network-pre.target")
        assert activated_at(booted, FIREWALL) < activated_at(booted, "sysinit.target")
