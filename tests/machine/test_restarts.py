"""A device that is restarted half-way through its setup, and after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.appliances import NEAR, Appliance, appliance
from tests.support.device_files import device_files
from tests.support.first_boot import (
    CANARIES,
    DASHBOARD_PORT,
    GATEWAY,
    WIZARD_PORT,
    Device,
    forms,
)
from tests.support.machine import writable_tree
from tests.support.waiting import wait_until
from tests.support.wizard_secrets import found

pytestmark = pytest.mark.long

_HALF = 5
# One log for each boot of the device.
LOGS: list[str] = []
_WIZARD = "platform-wizard.service"


@pytest.fixture(scope="module")
def again(device_tree: Path) -> Iterator[Appliance]:
    """A device that was set up despite a crash and a reboot, and was booted again."""
    with writable_tree(device_tree) as tree:
        with appliance(tree, programs=False, clean=True) as here:
            _answer_half_and_kill(here.device, tree)
            LOGS.append(here.machine.log("--output=verbose"))
        with appliance(tree, programs=False, clean=True) as here:
            _finish_after_reboot(here.device, tree)
            here.device.wait_until_served(DASHBOARD_PORT)
            LOGS.append(here.machine.log("--output=verbose"))
        before = device_files(tree)
        with appliance(tree, programs=False) as here:
            here.device.wait_until_served(DASHBOARD_PORT)
            assert device_files(here.root) == before
            yield here


def _answer_half_and_kill(device: Device, tree: Path) -> None:
    """Answer half of the steps, kill the wizard, and check that it restarts with the answers."""
    device.visitor().answer(dict(list(forms(tree).items())[:_HALF]))
    show = ("systemctl", "show", "--property=MainPID", "--value", _WIZARD)
    main = device.run(*show)
    device.run("systemctl", "kill", "--kill-whom=all", "--signal=KILL", _WIZARD)
    wait_until(lambda: device.run(*show) not in (main, "0\n"))
    assert 'value="kitchen"' in device.visitor().ask("/wizard/system").body
    assert device.secrets_asked() == ["provider"]


def _finish_after_reboot(device: Device, tree: Path) -> None:
    """Answer the other steps, enter the lost secrets again, and apply."""
    visitor = device.visitor()
    assert 'value="kitchen"' in visitor.ask("/wizard/system").body
    assert device.secrets_asked() == ["provider"]
    every = forms(tree)
    visitor.answer(dict(list(every.items())[_HALF:]))
    refused = visitor.apply()
    assert (refused.status, "OPENROUTER_API_KEY" in refused.body) == (200, True)
    assert device.call("test", "-e", "/etc/platform/secrets.env").returncode == 1
    visitor.set_up({"provider": every["provider"]})


def test_wiz_04_and_fs_06_neither_a_crash_nor_a_reboot_during_setup_loses_an_answer(
    again: Appliance,
) -> None:
    # The fixture has checked that; here no secret may be in a log.
    logs = [*LOGS, again.machine.log("--output=verbose")]
    assert "setup-apply by user" in "".join(logs)
    assert {name: found(secret, *logs) for name, secret in CANARIES.items()} == {
        name: [] for name in CANARIES
    }


def test_after_a_reboot_the_dashboard_runs_and_the_wizard_does_not(again: Appliance) -> None:
    units = (_WIZARD, "platform-wizard.socket", "platform-wizard-qr.service")
    states = [again.device.call("systemctl", "is-active", unit).stdout.strip() for unit in units]
    assert states == ["inactive"] * len(units)
    with pytest.raises(ConnectionRefusedError):
        again.far.connects(NEAR, WIZARD_PORT)
    assert "OpenClaw" in again.device.dashboard().ask("/app/dashboard").body


def test_after_a_reboot_the_gateway_has_its_key_and_the_device_its_name(again: Appliance) -> None:
    device = again.device
    main = device.run("systemctl", "show", "--property=MainPID", "--value", GATEWAY).strip()
    environment = device.run("cat", f"/proc/{main}/environ").split("\0")
    assert f"OPENROUTER_API_KEY={CANARIES['provider']}" in environment
    assert device.run("hostname") == "kitchen\n"
    assert device.run("date", "+%z") == "+0545\n"
    for unit in (GATEWAY, "platform-tunnel.service"):
        assert device.run("systemctl", "is-active", unit) == "active\n"
    assert device.run("systemctl", "--failed", "--quiet", "--plain") == ""


def test_after_a_reboot_the_firewall_rules_are_loaded(again: Appliance) -> None:
    assert "policy drop" in again.device.run("nft", "list", "table", "inet", "platform")
    assert again.far.connects(NEAR, 22)
    assert not again.far.connects(NEAR, 8080, 0.5)


def test_a_configured_device_is_not_set_up_again(again: Appliance) -> None:
    device = again.device
    device.call("systemctl", "start", _WIZARD)
    assert not device.answers(WIZARD_PORT)
