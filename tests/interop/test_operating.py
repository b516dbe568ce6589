"""The commands in docs/how-to/operating.md, on real machines."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from dev.distributions import ROOT
from tests.support.appliances import NEAR, Appliance
from tests.support.machine import Machine, machine, writable_tree
from tests.support.nginx import Certificate, nginx
from tests.support.waiting import wait_until
from tests.support.web_servers import served

BACKUP = "var/backups/device.tar.gz"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GATEWAY = "[Service]\nUser=agent\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
UNIT = "openclaw-gateway.service"
# The files of a device in use, with the mode and the owner of each.
FILES = {
    "/etc/platform/active-profile": ("openclaw\n", "644 root:root"),
    "/etc/platform/secrets.env": ("OPENAI_API_KEY=sk-canary\n", "640 root:agent"),
    "/etc/platform/tunnel/credentials.json": ("{}", "600 root:root"),
    "/etc/platform/setup-complete": ("{}\n", "644 root:root"),
    "/etc/nftables.d/platform.nft": ("table inet platform {\n}\n", "644 root:root"),
    "/etc/default/platform-appliance": ("PLATFORM_ALLOWED_HOSTS=dash.example\n", "644 root:root"),
    "/var/lib/platform/chat-history.jsonl": ("", "640 platform:platform"),
    "/home/agent/.openclaw/memory": ("all that it knows", "600 agent:agent"),
    "/home/agent/.ssh/authorized_keys": ("ssh-ed25519 AAAA me\n", "600 agent:agent"),
}
WEB = ("pwa", "wizard")
BOUND = "/var/lib/platform/wizard-tls/wizard.pem"


def part(title: str) -> str:
    """The section of the document with this title."""
    text = (ROOT / "docs/how-to/operating.md").read_text()
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def commands(title: str, block: int = 0) -> str:
    """The commands in one of its blocks, as a script."""
    found = [body for language, body in FENCE.findall(part(title)) if language == "console"]
    typed = re.sub(r"^\$ ", "", found[block], flags=re.MULTILINE)
    # The machines of the tests have no sudo, because every command runs as root.
    return re.sub(r"\bsudo ", "", typed).replace("PROFILE", "openclaw").replace("NAME", "kitchen")


def install_services(here: Machine) -> None:
    """Install our services and a gateway on a machine."""
    here.write(f"/etc/systemd/system/{UNIT}", GATEWAY)
    here.run("platformctl", "services", "install", "--programs=/usr/local/bin")


def backup() -> bytes:
    """The backup of a device in use."""
    with machine() as old:
        install_services(old)
        wait_until(lambda: old.call("test", "-s", BOUND).returncode == 0)
        for path, (text, how) in FILES.items():
            mode, owner = how.split()
            old.write(path, text, mode)
            old.run("chown", owner, path)
        old.run("chown", "-R", "agent:agent", "/home/agent")
        old.run("systemctl", "start", UNIT)
        old.run("sh", "-ec", commands("Backup and restore"))
        assert old.run("systemctl", "is-active", UNIT) == "active\n"
        assert old.rights(f"/{BACKUP}") == "600 root:root"
        return Path(f"/proc/{old.init}/root/{BACKUP}").read_bytes()


@pytest.mark.long
def test_a_restored_device_has_everything_that_is_not_bound_to_the_old_machine() -> None:
    copied = backup()
    with tarfile.open(fileobj=io.BytesIO(copied)) as archive:
        names = {f"/{name}" for name in archive.getnames()}
    assert set(FILES) <= names
    assert not [name for name in names if "wizard-tls" in name]
    with writable_tree() as tree:
        with machine(tree, clean=True) as new:
            # A user created earlier takes the id that ours had on the old machine.
            new.run("useradd", "--system", "somebody")
            install_services(new)
            (tree / BACKUP).write_bytes(copied)
            typed = commands("Backup and restore", 1)
            assert typed.endswith("reboot\n")
            new.run("sh", "-ec", typed.removesuffix("reboot\n"))
        with machine(tree) as new:
            assert new.run("hostname") == "kitchen\n"
            for path, (text, how) in FILES.items():
                assert (path, new.rights(path)) == (path, how)
                assert new.run("cat", path) == text
            assert new.rights("/var/lib/platform") == "1770 root:platform"
            units = (UNIT, "platform-pwa.service", "platform-wizard.service")
            assert new.states("is-active", *units) == ["active", "active", "inactive"]
            assert "table inet platform" in new.run("nft", "list", "ruleset")
            assert "failed" not in new.run("systemctl", "--failed", "--plain", "--no-legend")


def test_a_device_can_be_set_up_again(shared: Appliance) -> None:
    here, state_file = shared.machine, "/var/lib/platform/wizard-state.json"
    state = {"version": 2, "started_at": "2026-11-20T10:00:00Z", "step": "review"}
    here.write("/etc/platform/setup-complete", "{}\n")
    here.write(state_file, json.dumps(state), "0600")
    here.run("chown", "platform:platform", state_file)
    try:
        here.run("systemctl", "stop", "platform-wizard.socket", "platform-wizard.service")
        shown = here.run("sh", "-ec", commands("Set up again"))
        assert re.search(r"^https://\S+:8088/\?token=[0-9a-f]{64}$", shown, flags=re.MULTILINE)
        wait_until(lambda: here.states("is-active", "platform-wizard-qr.service") == ["active"])
    finally:
        here.run("rm", "-f", "/etc/platform/setup-complete", state_file)
        here.run("systemctl", "restart", "platform-wizard.socket", "platform-wizard.service")


ASKED = """
import http.client
for name, port in (("dash", 8089), ("setup", 8088), ("evil", 8089)):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Host": f"{name}.example.org", "X-Forwarded-Proto": "https"}
    path = "/app/dashboard" if port == 8089 else "/wizard/"
    connection.request("GET", path, headers=headers)
    print(connection.getresponse().status)
"""


@pytest.fixture
def proxied(shared: Appliance) -> Iterator[Appliance]:
    """A device whose apps are configured for a proxy, as the document describes."""
    run = shared.machine.run
    units = [f"platform-{name}.{kind}" for kind in ("service", "socket") for name in WEB]
    run("sh", "-ec", commands("Behind a reverse proxy"))
    yield shared
    made = (f"/etc/systemd/system/{unit}.d" for unit in units[2:])
    run("rm", "-r", "/etc/default/platform-appliance", *made)
    run("systemctl", "daemon-reload")
    run("systemctl", "stop", *units)
    run("systemctl", "start", *reversed(units))


def test_behind_a_proxy_both_apps_only_listen_on_the_device(proxied: Appliance) -> None:
    for port in (8088, 8089):
        with pytest.raises(ConnectionRefusedError):
            proxied.far.connects(NEAR, port)
    link = proxied.machine.run("wizard-app", "launch-url", "--production").splitlines()[-1]
    assert link.startswith("https://setup.example.org/?token=")
    assert proxied.machine.run("python3", "-c", ASKED).split() == ["200", "401", "421"]


@pytest.mark.parametrize(
    ("name", "words", "path", "expected"),
    [
        ("dash", ["pwa-app"], "/app/dashboard", 200),
        ("setup", ["wizard-app", "--behind-proxy"], "/?token=" + "a" * 64, 302),
    ],
)
def test_the_nginx_configuration_serves_the_app_by_its_name_over_https(
    name: str, words: list[str], path: str, expected: int, tmp_path: Path, certificate: Certificate
) -> None:
    (text,) = [
        body for lang, body in FENCE.findall(part("Behind a reverse proxy")) if lang == "nginx"
    ]
    block = next(one for one in text.split("server {") if f"{name}.example.org" in one)
    users = tmp_path / "users"
    users.write_text("owner:{PLAIN}secret\n")
    environment = {
        "PLATFORM_ROOT": str(tmp_path / "device"),
        "PLATFORM_ALLOWED_HOSTS": f"{name}.example.org",
        "WIZARD_TOKEN": "a" * 64,
        "WIZARD_DEV_OUT": str(tmp_path / "out"),
        "PWA_DEV_STUB": "1",
    }
    with served(words[0], environment, tmp_path / "log", *words[1:]) as app:
        extra = block[block.index("location") : block.rindex("}")]
        extra = re.sub(r"127\.0\.0\.1:808\d", f"127.0.0.1:{app.port}", extra)
        extra = extra.replace("/etc/nginx/dashboard.users", str(users))
        with nginx(tmp_path, tmp_path / "nginx", extra, certificate=certificate) as proxy:
            answer = requests.get(
                f"{proxy.url}{path}",
                headers={"Host": f"{name}.example.org"},
                auth=("owner", "secret") if name == "dash" else None,
                verify=str(certificate.authority),
                allow_redirects=False,
                timeout=60,
            )
            assert answer.status_code == expected, answer.text
