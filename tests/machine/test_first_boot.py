"""A device from its first boot to its dashboard: the nine steps over https, and the result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.appliances import NEAR, NEAR_V6, Appliance, appliance
from tests.support.first_boot import (
    CANARIES,
    CREDENTIALS,
    DASHBOARD_PORT,
    GATEWAY,
    LOGIN,
    WIZARD_PORT,
    forms,
)
from tests.support.machine import writable_tree
from tests.support.waiting import wait_until
from tests.support.wizard_secrets import found
from tests.support.wizard_visits import Visitor

pytestmark = pytest.mark.long

_LINK = re.compile(r"https://10\.99\.0\.1:8088(/\?token=[0-9a-f]{64})")
# What a container cannot have, and what the image or the package of a gateway provides.
_NOT_OURS = {"time-sync", "ssh-key-only", "apparmor-enforcing", "hardened-sysctls", "zram-swap"}


@dataclass
class SetupStory:
    """A device that was set up, and whose key was then replaced in the dashboard."""

    here: Appliance
    console: Path
    pages: dict[str, str] = field(default_factory=dict)
    visitors: list[Visitor] = field(default_factory=list)


@pytest.fixture(scope="module")
def story(device_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SetupStory]:
    console = tmp_path_factory.mktemp("screen") / "console"
    with (
        writable_tree(device_tree) as tree,
        appliance(tree, programs=False, console=console) as here,
    ):
        told = SetupStory(here, console)
        device = here.device
        device.wait_until_served()
        wait_until(lambda: _LINK.search(console.read_text("utf-8", "replace")) is not None)
        shown = _LINK.search(console.read_text("utf-8", "replace"))
        assert shown is not None
        visitor = device.visitor(shown[1])
        visitor.set_up(forms(tree))
        wait_until(lambda: here.device.call("systemctl", "is-active", GATEWAY).returncode == 0)
        told.pages["done"] = visitor.ask("/wizard/done").body
        port_open = "import socket; socket.create_connection(('127.0.0.1', 8080)).close()"
        wait_until(lambda: device.call("python3", "-c", port_open).returncode == 0)
        assert visitor.ask("/chat/message", [("message", "Good morning")]).status == 200
        told.pages["chat"] = visitor.ask("/chat").body
        dashboard = device.dashboard()
        told.pages["before"] = dashboard.ask("/app/dashboard").body
        new_key = [("provider", "openrouter"), ("api_key", CANARIES["rotated"])]
        assert dashboard.ask("/app/keys/rotate", new_key).location == "/app/keys"
        told.pages["rotated"] = dashboard.ask("/app/keys").body
        told.visitors += [visitor, dashboard]
        yield told


def test_its_name_and_its_time_zone_are_the_answers(story: SetupStory) -> None:
    device = story.here.device
    assert device.run("hostname") == "kitchen\n"
    assert device.run("hostnamectl", "--static") == "kitchen\n"
    assert device.run("timedatectl", "show", "--property=Timezone", "--value") == "Asia/Kathmandu\n"
    assert device.run("date", "+%z") == "+0545\n"


FILES = {
    "/etc/hostname": ("644 root:root", "kitchen\n"),
    "/etc/timezone": ("644 root:root", "Asia/Kathmandu\n"),
    "/etc/platform/active-profile": ("644 root:root", "openclaw\n"),
    "/etc/platform/active-provider": ("644 root:root", "openrouter\n"),
    "/etc/platform/backup.toml": ("644 root:root", None),
    "/etc/platform/rclone.conf": ("640 root:agent", None),
    "/etc/platform/setup-complete": ("644 root:root", None),
    "/etc/platform/tunnel/credentials.json": ("600 root:root", CREDENTIALS),
    "/etc/nftables.d/platform.nft": ("644 root:root", None),
    "/home/agent/.ssh": ("700 agent:agent", None),
    "/home/agent/.ssh/authorized_keys": ("600 agent:agent", None),
    "/var/lib/platform": ("1770 root:platform", None),
    "/var/lib/platform/apply-journal.jsonl": ("660 root:platform", None),
    "/var/lib/platform/wizard-state.json": ("600 platform:platform", None),
    "/run/platform": ("1770 root:platform", None),
    "/run/platform/control.sock": ("660 root:platform", None),
}


def test_every_file_has_its_mode_and_its_owner(story: SetupStory) -> None:
    machine = story.here.machine
    assert {path: machine.rights(path) for path in FILES} == {
        path: rights for path, (rights, _) in FILES.items()
    }
    texts = {path: text for path, (_, text) in FILES.items() if text is not None}
    assert {path: story.here.read(path) for path in texts} == texts


def test_only_the_gateway_and_root_can_read_the_key(story: SetupStory) -> None:
    device = story.here.device
    users = [line.split(":")[0] for line in device.run("cat", "/etc/passwd").splitlines()]
    readers = [
        user
        for user in users
        if device.call(
            *("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"),
            *("cat", "/etc/platform/secrets.env"),
        ).returncode
        == 0
    ]
    assert {"agent", "platform", "root", "sshd"} <= set(users)
    # The mode is 0600 after the control CLI replaced the key.
    assert readers == ["root"]


def test_only_the_owner_of_the_key_can_log_in_over_ssh(story: SetupStory) -> None:
    options = ("BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
    words = [word for option in options for word in ("-o", option)]
    log_in = ("ssh", "-F", "none", *words, "-i", LOGIN, f"agent@{NEAR}", "id", "-un")
    done = story.here.beside(*log_in)
    assert (done.returncode, done.stdout) == (0, "agent\n"), done
    other = [word if word != LOGIN else "/srv/none" for word in log_in]
    assert story.here.beside(*other).returncode == 255


@pytest.mark.parametrize("address", [NEAR, NEAR_V6])
def test_the_firewall_only_opens_the_intended_ports(story: SetupStory, address: str) -> None:
    story.here.device.run(
        *("systemd-run", "--quiet", "--collect", "--unit=more", "python3", "-m", "http.server"),
        *("--bind", "::", "9000"),
    )
    inside = "import socket, sys; socket.create_connection(('::1', 9000)).close()"
    wait_until(lambda: story.here.device.call("python3", "-c", inside).returncode == 0)
    open_ports = {22: True, WIZARD_PORT: True, DASHBOARD_PORT: True, 8080: False, 9000: False}
    found = {port: story.here.far.connects(address, port, 0.5) for port in open_ports}
    story.here.device.run("systemctl", "stop", "more")
    assert found == open_ports


def test_the_gateway_was_started_after_everything_it_needs(story: SetupStory) -> None:
    starts = story.here.device.seen_by_gateway()
    assert starts
    for seen in starts:
        assert (seen["host"], seen["firewall"]) == ("kitchen", True)
        assert seen["records"] == {"active-profile": "openclaw", "active-provider": "openrouter"}
        assert seen["environ"]["OPENROUTER_API_KEY"] in (
            CANARIES["provider"],
            CANARIES["rotated"],
        )
    assert story.here.device.call("systemctl", "is-enabled", GATEWAY).stdout == "enabled\n"


def test_the_chat_of_the_wizard_reaches_the_gateway(story: SetupStory) -> None:
    assert "You said: Good morning" in story.pages["chat"]


def test_the_last_page_links_to_the_device_by_its_new_name(story: SetupStory) -> None:
    for text in (f'"http://kitchen.local:{DASHBOARD_PORT}"', "ssh agent@kitchen.local"):
        assert text in story.pages["done"]


def test_the_dashboard_shows_what_was_set_up(story: SetupStory) -> None:
    for word in ("OpenClaw", "OpenRouter", "kitchen", "Running"):
        assert word in story.pages["before"]


def test_the_gateway_gets_a_key_that_was_replaced_in_the_dashboard(story: SetupStory) -> None:
    device = story.here.device
    assert "Rotated openrouter successfully." in story.pages["rotated"]
    stored = device.run("cat", "/etc/platform/secrets.env")
    assert stored == f"OPENROUTER_API_KEY={CANARIES['rotated']}\n"
    device.run("systemctl", "restart", GATEWAY)
    wait_until(
        lambda: device.seen_by_gateway()[-1]["environ"]["OPENROUTER_API_KEY"] == CANARIES["rotated"]
    )
    main = device.run("systemctl", "show", "-P", "MainPID", "platform-pwa.service").strip()
    assert device.run("ps", "-o", "user=", "-p", main).strip() == "platform"


def test_the_user_of_the_apps_can_read_the_status_of_setup(story: SetupStory) -> None:
    as_platform = ("runuser", "-u", "platform", "--")
    told = story.here.device.run(*as_platform, "platformctl", "setup", "status")
    assert told.startswith("This device is set up since ")
    assert "Everything was applied. " in told


def test_the_doctor_finds_no_problem_of_ours(story: SetupStory) -> None:
    verdict = json.loads(story.here.device.call("platformctl", "doctor", "--json").stdout)
    wrong = {
        check["name"]: check["outcome"]
        for check in verdict["checks"]
        if check["outcome"]["kind"] not in ("Pass", "Skip")
    }
    assert set(wrong) <= _NOT_OURS, wrong


def test_no_unit_has_failed(story: SetupStory) -> None:
    assert story.here.device.run("systemctl", "--failed", "--quiet", "--plain") == ""


def test_leak_01_the_journal_the_screen_and_the_pages_contain_no_secret(story: SetupStory) -> None:
    log = story.here.device.run("journalctl", "--all", "--no-pager", "--output=verbose")
    pages = [page for visitor in story.visitors for page in visitor.pages]
    applied = story.here.device.run("cat", "/var/lib/platform/apply-journal.jsonl")
    state = story.here.device.run("cat", "/var/lib/platform/wizard-state.json")
    texts = (log, applied, state, story.console.read_text("utf-8", "replace"), *pages)
    assert "setup-apply by user" in log
    hits = {name: found(secret, *texts) for name, secret in CANARIES.items()}
    assert hits == {name: [] for name in CANARIES}
