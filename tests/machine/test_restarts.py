"""A device that is switched off and on again, half-way through its setup and after it."""

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
from tests.support.wizard_visits import Visitor

pytestmark = pytest.mark.long

_HALF = 5
_WIZARD = "platform-wizard.service"


def _asks_for_secrets_again(device: Device, tree: Path) -> None:
    """The rest is answered, and what was in memory is asked for, and then it is done."""
    visitor = device.visitor()
    page = visitor.ask("/wizard/system").body
    assert 'value="kitchen"' in page
    assert device.secrets_asked() == ["provider"]
    every = forms(tree)
    visitor.answer(dict(list(every.items())[_HALF:]))
    refused = visitor.apply()
    assert (refused.status, "OPENROUTER_API_KEY" in refused.body) == (200, True)
    assert device.call("test", "-e", "/etc/platform/secrets.env").returncode == 1
    visitor.set_up({"provider": every["provider"]})


def _half_answered(device: Device, tree: Path) -> Visitor:
    visitor = device.visitor()
    visitor.answer(dict(list(forms(tree).items())[:_HALF]))
    return visitor


def test_wiz_04_a_reboot_half_way_brings_the_wizard_back_with_what_was_answered(
    device_tree: Path,
) -> None:
    with writable_tree(device_tree) as tree:
        with appliance(tree, programs=False, clean=True) as here:
            _half_answered(here.device, tree)
        with appliance(tree, programs=False) as here:
            _asks_for_secrets_again(here.device, tree)


def test_fs_06_a_wizard_that_is_killed_half_way_comes_back_with_what_was_answered(
    device_tree: Path,
) -> None:
    with writable_tree(device_tree) as tree, appliance(tree, programs=False) as here:
        device = here.device
        _half_answered(device, tree)
        main = device.run("systemctl", "show", "--property=MainPID", "--value", _WIZARD)
        device.run("systemctl", "kill", "--kill-whom=all", "--signal=KILL", _WIZARD)
        wait_until(
            lambda: (
                device.run("systemctl", "show", "--property=MainPID", "--value", _WIZARD)
                not in (main, "0\n")
            )
        )
        _asks_for_secrets_again(device, tree)
        log = device.run("journalctl", "--all", "--no-pager", "--output=verbose")
        assert {name: found(secret, log) for name, secret in CANARIES.items()} == {
            name: [] for name in CANARIES
        }


@pytest.fixture(scope="module")
def again(device_tree: Path) -> Iterator[Appliance]:
    """A device that was set up, was switched off, and runs again."""
    with writable_tree(device_tree) as tree:
        with appliance(tree, programs=False, clean=True) as here:
            here.device.visitor().set_up(forms(tree))
            here.device.comes_up(DASHBOARD_PORT)
        before = device_files(tree)
        with appliance(tree, programs=False) as here:
            here.device.comes_up(DASHBOARD_PORT)
            after = device_files(here.root)
            assert after == before
            yield here


def test_after_a_reboot_the_wizard_is_not_there_and_the_dashboard_is(again: Appliance) -> None:
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


def test_after_a_reboot_the_firewall_is_in_force(again: Appliance) -> None:
    assert "policy drop" in again.device.run("nft", "list", "table", "inet", "platform")
    assert again.far.connects(NEAR, 22)
    assert not again.far.connects(NEAR, 8080, 0.5)


def test_a_device_that_is_set_up_is_not_set_up_again(again: Appliance) -> None:
    device = again.device
    device.call("systemctl", "start", _WIZARD)
    assert not device.answers(WIZARD_PORT)
