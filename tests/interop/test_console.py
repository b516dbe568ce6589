"""The console of a real machine before it is set up, as who stands before it sees it."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.machine import Machine, machine
from tests.support.network_namespaces import Network, join, new_network
from tests.support.waiting import wait_until
from tests.support.web_servers import unverified
from tests.wizard_app.test_console import expected, modules, plain, rows

LONG_S = 30
NEAR, FAR = "10.99.0.1", "10.99.0.2"
LINK = re.compile(rf"https://{re.escape(NEAR)}:8088/\?token=([0-9a-f]{{64}})")
UNIT = "platform-wizard-qr.service"
FILES = ("/run/platform-wizard.issue", "/etc/issue.d/platform-wizard.issue")
NO_LINK = "sudo wizard-app new-token --production"


@dataclass(frozen=True)
class Device:
    """A machine that was started, and what its console has shown."""

    machine: Machine
    network: Network
    beside: Network
    console: Path

    def shown(self) -> str:
        """What the console shows now: agetty's text, since it was last put there."""
        return self.console.read_text().replace("\r", "").rpartition("Debian GNU/Linux 12 ")[2]

    def with_address(self) -> None:
        join(self.beside, self.network, {f"{FAR}/24": f"{NEAR}/24"})

    def token(self) -> str:
        """The token of the link on the console, when there is one."""
        found = LINK.search(self.shown())
        return found[1] if found else ""

    def new_token(self) -> str:
        """That of a new link, once the console shows it."""
        told = json.loads(self.machine.run("wizard-app", "new-token", "--production", "--json"))
        token: str = told["url"].rpartition("=")[2]
        wait_until(lambda: self.token() == token and self.shown().endswith("login: "))
        return token

    def rights(self, path: str) -> str:
        return self.machine.run("stat", "--format=%a %U:%G", path).strip()

    def state(self) -> str:
        return self.machine.call("systemctl", "is-active", UNIT).stdout.strip()


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Device]:
    """A device with the services on it, and a network without any address."""
    console = folder / "console"
    with (
        new_network() as near,
        new_network() as far,
        machine(console=console, network=near) as here,
    ):
        here.run("platformctl", "services", "install", "--programs=/usr/local/bin")
        yield Device(here, near, far, console)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    """One with an address, for who makes a link of their own."""
    with started(tmp_path_factory.mktemp("device")) as here:
        here.with_address()
        yield here


def test_the_console_shows_link_code_and_fingerprint(device: Device) -> None:
    token = device.new_token()
    shown = device.shown()
    assert rows(plain(shown.partition("\n\n")[2]), 80) <= 24
    code = expected(f"https://{NEAR}:8088/?token={token}")
    assert modules(shown, halves=True)[: len(code)] == code
    with device.beside.socket() as plain_socket:
        plain_socket.connect((NEAR, 8088))
        with unverified().wrap_socket(plain_socket) as safe:
            certificate = safe.getpeercert(binary_form=True)
    assert certificate is not None
    digits = re.sub(
        r"[^0-9A-F]", "", " ".join(re.findall(r"(?:[0-9A-F]{2}:)+[0-9A-F]{2}:?", shown))
    )
    assert digits == _fingerprint(certificate)


def _fingerprint(certificate: bytes) -> str:
    import hashlib

    return hashlib.sha256(certificate).hexdigest().upper()


def test_a_screen_that_is_cleared_has_it_again(device: Device) -> None:
    token = device.new_token()
    device.machine.run("systemctl", "restart", "console-getty.service")
    before = device.console.stat().st_size
    wait_until(lambda: device.console.stat().st_size > before)
    wait_until(lambda: device.token() == token)


def test_tok_09_root_alone_may_read_what_the_console_shows(device: Device) -> None:
    token = device.new_token()
    assert device.rights(FILES[0]) == "600 root:root"
    for user in ("platform", "agent"):
        seen = device.machine.call("setpriv", f"--reuid={user}", "--clear-groups", "cat", FILES[1])
        assert (seen.returncode, seen.stdout) == (1, "")
    assert token in device.machine.run("cat", FILES[1])


def test_leak_01_no_link_is_in_the_journal_nor_among_words_and_variables(device: Device) -> None:
    token = device.new_token()
    device.machine.run("systemctl", "restart", UNIT)
    wait_until(lambda: token in device.machine.call("cat", *FILES).stdout)
    log = device.machine.run("journalctl", "--no-pager", "--all", "--output=export")
    assert token not in log
    assert "token=" not in log
    processes = device.machine.run("sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ")
    assert token not in processes


def test_root_sees_and_makes_links_of_the_wizard_of_another_user(device: Device) -> None:
    token = device.new_token()
    assert device.rights("/run/platform/wizard.token") == "600 platform:platform"
    again = device.machine.run("wizard-app", "launch-url", "--production")
    assert again.splitlines()[0] == f"https://{NEAR}:8088/?token={token}"


def test_a_link_that_was_used_is_shown_no_more(device: Device) -> None:
    token = device.new_token()
    with device.beside.socket() as plain_socket:
        plain_socket.connect((NEAR, 8088))
        with unverified().wrap_socket(plain_socket) as safe:
            safe.sendall(f"GET /?token={token} HTTP/1.0\r\nHost: {NEAR}:8088\r\n\r\n".encode())
            assert b" 302 " in safe.recv(4096).partition(b"\r\n")[0]
            with contextlib.suppress(ssl.SSLError):
                safe.unwrap()
    wait_until(lambda: NO_LINK in device.shown())
    assert token not in device.machine.run("cat", *FILES)
    assert not device.token()


def test_a_wizard_that_starts_anew_has_its_new_link_shown(device: Device) -> None:
    token = device.new_token()
    device.machine.run("systemctl", "restart", "platform-wizard.service")
    wait_until(lambda: device.token() not in {"", token})


def test_a_killed_one_leaves_nothing_when_it_is_stopped(device: Device) -> None:
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
        assert device.state() == "active"
        assert "platform" not in device.machine.run("systemctl", "--failed", "--plain")
    finally:
        device.machine.run("mv", "/dev/console.away", "/dev/console")
        device.machine.run("systemctl", "start", "console-getty.service")


def test_an_address_that_comes_late_is_shown_and_a_device_that_is_set_up_shows_nothing(
    tmp_path: Path,
) -> None:
    with started(tmp_path) as late:
        wait_until(lambda: "no address in a network" in late.shown())
        assert ".local:8088/?token=" in late.shown()
        assert not modules(late.shown(), halves=True)
        late.with_address()
        wait_until(lambda: late.token() != "")
        late.machine.write("/etc/platform/setup-complete", "")
        wait_until(lambda: late.state() == "inactive")
        wait_until(lambda: "token=" not in late.shown())
        assert late.machine.call("ls", *FILES).stdout == ""
        assert late.machine.run("systemctl", "show", "--value", "--property=Result", UNIT) == (
            "success\n"
        )
