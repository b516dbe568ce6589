"""A first boot under QEMU, with what a container cannot show.

Memory limits, filters of addresses, the kernel's own protections, and a disk that loses what
was not flushed when the power goes.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machine.virtual_machine import Disk, disk_of, running
from tests.support.first_boot import (
    CANARIES,
    DASHBOARD_PORT,
    GATEWAY,
    SECRET_STEPS,
    WIZARD_PORT,
    Device,
    forms,
)
from tests.support.machine import writable_tree
from tests.support.waiting import wait_until
from tests.support.wizard_visits import Fields

pytestmark = pytest.mark.long

_JOURNAL = "/var/lib/platform/apply-journal.jsonl"
_COMPLETE = "/etc/platform/setup-complete"
# So many lines of the journal are seen when the power goes.
_LINES = 16
_LONG_S = 240
# More than any limit of ours, and less than none.
_MOST = 1 << 30
# A network beside the device whose addresses are public ones.
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


@dataclass
class Long:
    """A device that was set up in spite of two power cuts, and runs once more."""

    device: Device
    seen: list[str]
    found: list[str]


@pytest.fixture(scope="module")
def device(device_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Long]:
    folder = tmp_path_factory.mktemp("virtual")
    log = folder / "console"
    with writable_tree(device_tree) as tree:
        answers = forms(tree)
        disk = disk_of(tree, folder)
    with _said(log):
        seen = _cut_while_it_is_set_up(disk, log, answers)
        found = _completed_and_cut(disk, log, answers)
        with running(disk, log) as (_, again):
            again.comes_up(DASHBOARD_PORT)
            yield Long(again, seen, found)


@contextlib.contextmanager
def _said(log: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        print(log.read_text("utf-8", "replace")[-4000:])
        raise


def _cut_while_it_is_set_up(disk: Disk, log: Path, answers: Mapping[str, Fields]) -> list[str]:
    with running(disk, log) as (machine, here):
        visitor = here.visitor()
        visitor.answer(answers)

        def press() -> None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                visitor.apply()

        pressing = threading.Thread(target=press)
        pressing.start()
        seen: list[str] = []
        deadline = time.monotonic() + _LONG_S
        while len(seen) < _LINES and time.monotonic() < deadline:
            seen = here.call("cat", _JOURNAL).stdout.splitlines()
        machine.cut()
        pressing.join(_LONG_S)
        return seen


def _completed_and_cut(disk: Disk, log: Path, answers: Mapping[str, Fields]) -> list[str]:
    with running(disk, log) as (machine, here):
        found = here.call("cat", _JOURNAL).stdout.splitlines()
        assert here.call("test", "-e", _COMPLETE).returncode == 1
        assert here.call("systemctl", "is-active", GATEWAY).stdout == "inactive\n"
        visitor = here.visitor()
        asked = here.secrets_asked()
        assert set(asked) <= set(SECRET_STEPS)
        visitor.answer({slug: fields for slug, fields in answers.items() if slug in asked})
        done = visitor.apply()
        assert (done.status, done.location) == (302, "/wizard/done"), done.body
        # What was acknowledged is there, however soon the power goes.
        machine.cut()
    return found


def test_what_was_noted_before_the_power_went_is_on_the_disk(device: Long) -> None:
    assert len(device.seen) >= _LINES
    assert device.found[: len(device.seen)] == device.seen
    last = json.loads(device.seen[-1])
    assert last["state"] in ("running", "done")


def test_what_was_set_up_is_there_although_the_power_went_at_once(device: Long) -> None:
    here = device.device
    assert here.run("stat", "--format=%a %U:%G", "/etc/platform/secrets.env") == "640 root:agent\n"
    key = f"OPENROUTER_API_KEY={CANARIES['provider']}\n"
    assert here.run("cat", "/etc/platform/secrets.env") == key
    assert here.run("hostname") == "kitchen\n"
    assert "policy drop" in here.run("nft", "list", "table", "inet", "platform")
    wait_until(lambda: bool(here.seen_by_gateway()), _LONG_S)
    for seen in here.seen_by_gateway():
        assert seen["environ"]["OPENROUTER_API_KEY"] == CANARIES["provider"]
        assert (seen["firewall"], seen["host"]) == (True, "kitchen")
    assert not here.answers(WIZARD_PORT)
    # Every call of it takes seconds here, while the machine is still busy with its start.
    dashboard = here.dashboard()
    wait_until(lambda: "OpenClaw" in dashboard.ask("/app/dashboard").body, _LONG_S)


def test_no_unit_has_failed_under_a_kernel_of_its_own(device: Long) -> None:
    assert device.device.run("systemctl", "--failed", "--quiet", "--plain") == ""


def test_the_kernel_protects_files_in_shared_folders(device: Long) -> None:
    assert device.device.run("cat", "/proc/sys/fs/protected_regular") == "2\n"
    dashboard = device.device.dashboard()
    new_key = [("provider", "openrouter"), ("api_key", CANARIES["rotated"])]

    def rotated() -> bool:
        assert dashboard.ask("/app/keys/rotate", new_key).status == 302
        return "Rotated openrouter successfully." in dashboard.ask("/app/keys").body

    wait_until(rotated, _LONG_S)


def test_the_dashboard_may_use_so_much_memory_and_no_swap(device: Long) -> None:
    here, unit = device.device, "platform-pwa.service"
    for limit, name in (
        ("memory.max", "MemoryMax"),
        ("memory.swap.max", "MemorySwapMax"),
        ("pids.max", "TasksMax"),
    ):
        wanted = here.run("systemctl", "show", f"--property={name}", "--value", unit)
        in_force = here.run("cat", f"/sys/fs/cgroup/system.slice/{unit}/{limit}")
        assert wanted == in_force
        assert int(in_force) < (0 if limit == "memory.swap.max" else _MOST) + 1


def test_who_comes_from_the_internet_does_not_reach_the_dashboard(device: Long) -> None:
    here = device.device
    here.run("sh", "-ec", _STRANGER)
    beyond = ("ip", "netns", "exec", "stranger", "python3", "-c", _CONNECTS, "203.0.113.1")
    reached = {port: here.run(*beyond, str(port)).strip() for port in (22, DASHBOARD_PORT)}
    assert reached == {22: "connected", DASHBOARD_PORT: "TimeoutError"}
