"""The console of a real machine before setup, as a person in front of it sees it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import ssl
from pathlib import Path

import pytest

from tests.support.appliances import NEAR, Appliance, appliance, wire
from tests.support.waiting import wait_until
from tests.wizard_app.launch.test_console import expected, modules, plain, rows

pytestmark = pytest.mark.long

LINK = re.compile(rf"https://{re.escape(NEAR)}:8088/\?token=([0-9a-f]{{64}})")
UNIT = "platform-wizard-qr.service"
FILES = ("/run/platform-wizard.issue", "/etc/issue.d/platform-wizard.issue")
NO_LINK = "sudo wizard-app new-token --production"


class Device:
    """A booted machine, and the text on its console."""

    def __init__(self, here: Appliance) -> None:
        assert here.console is not None
        self.here, self.machine, self.console = here, here.machine, here.console

    def shown(self) -> str:
        """The current text on the console: everything since agetty last wrote its header."""
        screen = self.console.read_text("utf-8", "replace").replace("\r", "")
        return screen.rpartition("Debian GNU/Linux 12 ")[2]

    def token(self) -> str:
        """The token of the link on the console; empty without a link."""
        found = LINK.search(self.shown())
        return found[1] if found else ""

    def new_token(self) -> str:
        """Make a new link, wait until the console shows it, and return its token."""
        told = json.loads(self.machine.run("wizard-app", "new-token", "--production", "--json"))
        token: str = told["url"].rpartition("=")[2]
        wait_until(lambda: self.token() == token and self.shown().endswith("login: "))
        return token


@pytest.fixture
def device(shared: Appliance) -> Device:
    """A device with an address, for tests that make their own link."""
    return Device(shared)


def test_the_console_shows_link_qr_code_and_fingerprint(device: Device) -> None:
    token = device.new_token()
    shown = device.shown()
    assert rows(plain(shown.partition("\n\n")[2]), 80) <= 24
    code = expected(f"https://{NEAR}:8088/?token={token}")
    assert modules(shown, halves=True)[: len(code)] == code
    with contextlib.closing(device.here.connect(8088)) as connection:
        connection.connect()
        assert isinstance(connection.sock, ssl.SSLSocket)
        certificate = connection.sock.getpeercert(binary_form=True)
    assert certificate is not None
    digits = "".join(re.findall(r"(?:[0-9A-F]{2}:)+[0-9A-F]{2}:?", shown)).replace(":", "")
    assert digits == hashlib.sha256(certificate).hexdigest().upper()


def test_tok_09_only_root_can_read_the_text_of_the_console(device: Device) -> None:
    token = device.new_token()
    assert device.machine.rights(FILES[0]) == "600 root:root"
    # Root can read, and has made, the link of the wizard of another user.
    assert device.machine.rights("/run/platform/wizard.token") == "600 platform:platform"
    again = device.machine.run("wizard-app", "launch-url", "--production")
    assert again.splitlines()[0] == f"https://{NEAR}:8088/?token={token}"
    for user in ("platform", "agent"):
        seen = device.machine.call("setpriv", f"--reuid={user}", "--clear-groups", "cat", FILES[1])
        assert (seen.returncode, seen.stdout) == (1, "")
    assert token in device.machine.run("cat", FILES[1])


def test_leak_01_no_link_is_in_the_journal_or_in_arguments_and_variables(device: Device) -> None:
    token = device.new_token()
    device.machine.run("systemctl", "restart", UNIT)
    wait_until(lambda: token in device.machine.call("cat", *FILES).stdout)
    log = device.machine.run("journalctl", "--no-pager", "--all", "--output=export")
    assert token not in log
    assert "token=" not in log
    # cat fails if a process ends between the list and the reading.
    shown = device.machine.call("sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ").stdout
    assert "wizard-app" in shown
    assert token not in shown


def test_a_used_link_is_no_longer_shown(device: Device) -> None:
    token = device.new_token()
    assert device.here.device.visitor(f"/?token={token}")
    wait_until(lambda: NO_LINK in device.shown())
    assert token not in device.machine.run("cat", *FILES)
    assert not device.token()


def test_a_cleared_screen_shows_the_link_again_and_after_a_restart_the_new_one(
    device: Device,
) -> None:
    token = device.new_token()
    before = device.console.stat().st_size
    device.machine.run("systemctl", "restart", "console-getty.service")
    wait_until(lambda: device.console.stat().st_size > before and device.token() == token)
    device.machine.run("systemctl", "restart", "platform-wizard.service")
    wait_until(lambda: device.token() not in {"", token})


def test_a_killed_console_service_leaves_no_text_behind(device: Device) -> None:
    device.new_token()
    device.machine.run("systemctl", "kill", "--signal=KILL", UNIT)
    wait_until(lambda: device.machine.call("ls", *FILES).stdout == "")
    device.machine.run("systemctl", "restart", UNIT)
    device.new_token()


def test_without_a_console_nothing_fails(device: Device) -> None:
    device.machine.run("systemctl", "stop", "console-getty.service")
    device.machine.run("mv", "/dev/console", "/dev/console.away")
    try:
        device.machine.run("systemctl", "restart", UNIT, "platform-wizard.service")
        wait_until(lambda: "token=" in device.machine.call("cat", *FILES).stdout)
        assert device.machine.states("is-active", UNIT) == ["active"]
        assert "platform" not in device.machine.run("systemctl", "--failed", "--plain")
    finally:
        device.machine.run("mv", "/dev/console.away", "/dev/console")
        device.machine.run("systemctl", "start", "console-getty.service")


def test_a_late_address_is_shown_and_a_configured_device_shows_no_link(
    tmp_path: Path,
) -> None:
    with appliance(console=tmp_path / "console", wired=False) as here:
        here.machine.run("platformctl", "services", "install", "--programs=/usr/local/bin")
        late = Device(here)
        wait_until(lambda: "no network address" in late.shown())
        assert ".local:8088/?token=" in late.shown()
        assert not modules(late.shown(), halves=True)
        wire(here.near, here.far)
        wait_until(lambda: late.token() != "")
        here.machine.write("/etc/platform/setup-complete", "")
        wait_until(lambda: here.machine.states("is-active", UNIT) == ["inactive"])
        wait_until(lambda: "token=" not in late.shown())
        assert here.machine.call("ls", *FILES).stdout == ""
        assert here.machine.show(UNIT, "Result") == "success"
