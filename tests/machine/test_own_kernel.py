"""A first boot under QEMU, for what a container cannot show.

Memory limits, address filters, protections of the kernel, and a disk that loses unflushed data at a
power cut.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine.virtual_machine import disk_of, running
from tests.support.first_boot import (
    CANARIES,
    DASHBOARD_PORT,
    WIZARD_PORT,
    Device,
    forms,
)
from tests.support.machine import writable_tree
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

_LONG_S = 600
# Higher than any of our limits, and lower than no limit.
_MOST = 1 << 30
# A network beside the device, with public addresses.
_STRANGER = """
ip netns add stranger
ip link add near type veth peer name far netns stranger
ip address add 203.0.113.1/24 dev near
ip link set near up
ip -n stranger address add 203.0.113.2/24 dev far
ip -n stranger link set far up
"""
_CONNECTS = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()
except OSError as error:
    print(type(error).__name__)
else:
    print("connected")
"""


@pytest.fixture(scope="module")
def device(device_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    """A device whose power was cut immediately after setup, and that was booted again."""
    folder = tmp_path_factory.mktemp("virtual")
    log = folder / "console"
    with writable_tree(device_tree) as tree:
        answers = forms(tree)
        disk = disk_of(tree, folder)
    with _console_shown_on_failure(log):
        with running(disk, log) as (machine, here):
            visitor = here.visitor()
            visitor.answer(answers)
            # As a person would do it: on a busy host, the helper may be too slow for the wizard,
            # which reports it and asks for another press.
            wait_until(lambda: visitor.apply().location == "/wizard/done", _LONG_S, pause_s=5)
            # Acknowledged data is on the disk, however soon the power is cut.
            machine.cut()
        with running(disk, log) as (_, again):
            again.wait_until_served(DASHBOARD_PORT)
            yield again


@contextlib.contextmanager
def _console_shown_on_failure(log: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        print(log.read_text("utf-8", "replace")[-4000:])
        raise


def test_the_setup_survives_an_immediate_power_cut(device: Device) -> None:
    assert (
        device.run("stat", "--format=%a %U:%G", "/etc/platform/secrets.env") == "640 root:agent\n"
    )
    key = f"OPENROUTER_API_KEY={CANARIES['provider']}\n"
    assert device.run("cat", "/etc/platform/secrets.env") == key
    assert device.run("hostname") == "kitchen\n"
    assert "policy drop" in device.run("nft", "list", "table", "inet", "platform")
    wait_until(lambda: bool(device.seen_by_gateway()), _LONG_S)
    for seen in device.seen_by_gateway():
        assert seen["environ"]["OPENROUTER_API_KEY"] == CANARIES["provider"]
        assert (seen["firewall"], seen["host"]) == (True, "kitchen")
    assert not device.answers(WIZARD_PORT)
    # While the machine is still busy with booting, every call takes seconds.
    dashboard = device.dashboard()
    wait_until(lambda: "OpenClaw" in dashboard.ask("/app/dashboard").body, _LONG_S, pause_s=5)


def test_no_unit_has_failed_under_its_own_kernel(device: Device) -> None:
    assert device.run("systemctl", "--failed", "--quiet", "--plain") == ""


def test_the_kernel_protects_files_in_shared_folders(device: Device) -> None:
    assert device.run("cat", "/proc/sys/fs/protected_regular") == "2\n"
    dashboard = device.dashboard()
    new_key = [("provider", "openrouter"), ("api_key", CANARIES["rotated"])]

    def rotated() -> bool:
        assert dashboard.ask("/app/keys/rotate", new_key).status == 302
        return "Rotated openrouter successfully." in dashboard.ask("/app/keys").body

    # With pauses, because each attempt is much work for this slow machine.
    wait_until(rotated, _LONG_S, pause_s=5)


def test_the_kernel_enforces_the_limits_of_the_dashboard(device: Device) -> None:
    unit = "platform-pwa.service"
    for limit, name in (
        ("memory.max", "MemoryMax"),
        ("memory.swap.max", "MemorySwapMax"),
        ("pids.max", "TasksMax"),
    ):
        wanted = device.run("systemctl", "show", f"--property={name}", "--value", unit)
        in_force = device.run("cat", f"/sys/fs/cgroup/system.slice/{unit}/{limit}")
        assert wanted == in_force
        assert int(in_force) < (0 if limit == "memory.swap.max" else _MOST) + 1


def test_clients_from_the_internet_cannot_reach_the_dashboard(device: Device) -> None:
    device.run("sh", "-ec", _STRANGER)
    beyond = ("ip", "netns", "exec", "stranger", "python3", "-c", _CONNECTS, "203.0.113.1")
    reached = {port: device.run(*beyond, str(port)).strip() for port in (22, DASHBOARD_PORT)}
    assert reached == {22: "connected", DASHBOARD_PORT: "TimeoutError"}
