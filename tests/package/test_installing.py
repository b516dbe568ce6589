"""The Debian package on real machines: installed, upgraded, removed, purged and installed again."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.test_service_network import RULES
from tests.support.debian_package import (
    NAME,
    WORKING,
    both_answer,
    built_package,
    packed,
    unpacked,
)
from tests.support.machine import Machine, machine, run_in, writable_tree
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

NEWER = "2099.1.1"
PACKAGE, NEWER_PACKAGE = "/var/cache/package.deb", "/var/cache/newer.deb"
SETTINGS = "/etc/default/platform-appliance"
REFUSED = """
import socket
for port in (8088, 8089):
    print(socket.socket().connect_ex(("127.0.0.1", port)))
"""
# Opens a new connection for each request, until it is stopped.
VISITS = """
import json, pathlib, time, urllib.request
good, bad = 0, []
while good < 30 or not pathlib.Path("/run/enough").exists():
    try:
        good += urllib.request.urlopen("http://127.0.0.1:8089/healthz", timeout=60).read() == b"ok"
    except Exception as error:
        bad.append(repr(error))
    time.sleep(0.01)
print(json.dumps([good, bad]))
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The package of this checkout, and a newer one with a different settings file."""
    folder = tmp_path_factory.mktemp("packages")
    package = built_package()
    tree = unpacked(package, folder / "tree")
    with (tree / SETTINGS[1:]).open("a") as settings:
        settings.write("# Another one.\n")
    return package, packed(tree, NEWER, folder / "newer.deb")


@pytest.fixture(scope="module")
def installed(packages: tuple[Path, Path]) -> Iterator[Path]:
    """The files of a machine that never ran, with the package installed."""
    with machine_files(packages) as tree:
        run_in(tree, "dpkg", "--install", PACKAGE)
        yield tree


@contextlib.contextmanager
def machine_files(packages: tuple[Path, Path]) -> Iterator[Path]:
    """The files of a machine, with both packages copied into them."""
    with writable_tree() as tree:
        for package, place in zip(packages, (PACKAGE, NEWER_PACKAGE), strict=True):
            shutil.copyfile(package, tree / place[1:])
        yield tree


@contextlib.contextmanager
def booted(installed: Path) -> Iterator[Machine]:
    """Boot a throw-away machine that has the package."""
    with writable_tree(installed) as tree, machine(tree, programs=False) as running:
        yield running


def every_file(running: Machine) -> set[str]:
    """The paths of all files, without logs and the records of other programs."""
    found = running.run("find", "/", "-xdev", "-path", "/tmp", "-prune", "-o", "-print")
    changing = ("/var/log/", "/var/lib/dpkg/", "/var/lib/systemd/", "/var/cache/")
    return {path for path in found.splitlines() if not path.startswith(changing)}


def assert_works(running: Machine) -> None:
    """Check that all services run and that both apps answer."""
    assert running.states("is-active", *WORKING) == ["active"] * len(WORKING)
    assert both_answer(running)


def test_an_image_with_the_package_boots_into_both_apps(installed: Path) -> None:
    with booted(installed) as running:
        assert_works(running)
        assert running.run("systemctl", "list-units", "--failed", "--quiet", "--plain") == ""
        assert running.states("is-enabled", "platform-tunnel.service") == ["disabled"]
        # Root gets the link, and the programs find what they need.
        assert "https://" in running.run("wizard-app", "launch-url", "--production")
        assert json.loads(running.run("platformctl", "status", "--json"))
        assert running.run("release-tools", "compare", "2026.11.1", "2026.11.2")


def test_all_modules_are_compiled_at_build_time(installed: Path) -> None:
    libraries = installed / "usr/lib/platform-appliance"
    sources = {path for path in libraries.rglob("*.py") if path.parent.name != "__pycache__"}
    compiled = {
        path.parent.parent / f"{path.name.partition('.')[0]}.py"
        for path in libraries.rglob("*.pyc")
    }
    assert sources == compiled


def test_purging_leaves_a_machine_as_it_was(packages: tuple[Path, Path]) -> None:
    with machine_files(packages) as tree, machine(tree, programs=False) as running:
        before = every_file(running)
        running.run("dpkg", "--install", PACKAGE)
        assert_works(running)
        running.write("/etc/platform/secrets.env", "OPENAI_API_KEY=sk-1\n", mode="0640")
        running.write("/home/agent/.ssh/authorized_keys", "ssh-ed25519 AAAA\n", mode="0600")
        running.write("/etc/nftables.d/platform.nft", RULES)
        running.run("systemctl", "start", "platform-firewall.service")
        running.run("systemctl", "enable", "platform-tunnel.service")
        running.run("dpkg", "--purge", NAME)
        left = every_file(running) - before
        # Users who could log in still can.
        folder = "/home/agent/.ssh"
        assert left == {"/home/agent", folder, f"{folder}/authorized_keys"}
        assert before - every_file(running) == set()
        assert "platform" not in running.run("nft", "list", "tables")
        # Install once more, on top of what purging left.
        running.run("dpkg", "--install", PACKAGE)
        assert both_answer(running)


def test_removing_keeps_the_setup_and_opens_no_port(installed: Path) -> None:
    with booted(installed) as running:
        running.write("/etc/platform/active-provider", "openai\n")
        running.write("/etc/nftables.d/platform.nft", RULES)
        running.run("systemctl", "start", "platform-firewall.service")
        kept = ("/etc/platform", "/var/lib/platform", "/etc/nftables.d", SETTINGS)
        before = running.run("find", *kept)
        running.run("dpkg", "--remove", NAME)
        assert running.run("find", *kept) == before
        # The active firewall rules accept the same ports as before, and no others.
        assert "tcp dport { 22, 8088, 8089 } accept" in running.run("nft", "list", "ruleset")
        assert running.run("python3", "-c", REFUSED).split() == ["111", "111"]
        assert running.call("test", "-e", "/usr/lib/platform-appliance").returncode != 0
        assert not running.run("find", "/usr/bin", "-name", "platformctl")
        running.run("dpkg", "--install", PACKAGE)
        assert_works(running)
        assert running.run("cat", "/etc/platform/active-provider") == "openai\n"


def test_an_upgrade_refuses_no_connection_and_keeps_the_settings(installed: Path) -> None:
    with booted(installed) as running:
        running.write(SETTINGS, "PLATFORM_ALLOWED_HOSTS=dash.example.org\n")
        running.write("/etc/platform/active-provider", "openai\n")
        running.write("/var/lib/platform/push-subscriptions.jsonl", "{}\n")
        running.write("/visits.py", VISITS)
        old = running.show("platform-pwa.service", "MainPID")
        load = ("systemd-run", "--quiet", "--unit=visits", "--remain-after-exit")
        running.run(*load, "python3", "/visits.py")
        # As apt answers when nobody is there to ask.
        running.run("dpkg", "--force-confdef", "--force-confold", "--install", NEWER_PACKAGE)
        running.run("touch", "/run/enough")
        wait_until(lambda: running.show("visits", "SubState") == "exited")
        log = running.log("--unit=visits", "--output=cat", "--identifier=python3")
        good, bad = json.loads(log)
        assert (good > 20, bad) == (True, [])
        new = running.show("platform-pwa.service", "MainPID")
        assert new != old
        shown = ("dpkg-query", "--show", "--showformat=${Version}", NAME)
        assert running.run(*shown) == NEWER
        assert_works(running)
        assert running.run("cat", SETTINGS) == "PLATFORM_ALLOWED_HOSTS=dash.example.org\n"
        assert running.run("cat", "/etc/platform/active-provider") == "openai\n"
        assert running.run("cat", "/var/lib/platform/push-subscriptions.jsonl") == "{}\n"


def test_an_upgrade_starts_no_disabled_service(installed: Path) -> None:
    with booted(installed) as running:
        off = ("platform-pwa.socket", "platform-pwa.service")
        running.run("systemctl", "disable", "--now", *off)
        wizard = ("platform-wizard.socket", "platform-wizard.service")
        running.write("/etc/platform/setup-complete", "")
        running.run("systemctl", "stop", *wizard)
        running.run("dpkg", "--install", NEWER_PACKAGE)
        assert running.states("is-active", *wizard) == ["inactive"] * 2
        assert running.states("is-enabled", *off) == ["disabled"] * 2
        assert running.run("systemctl", "list-units", "--failed", "--quiet", "--plain") == ""
