"""What docs/operating.md tells an owner to type, typed on real machines."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.distributions import ROOT
from tests.support.machine import Machine, machine, writable_tree
from tests.support.network_namespaces import Network, join, new_network
from tests.support.nginx import make_certificate, nginx
from tests.support.waiting import wait_until
from tests.support.web_servers import served

LONG_S = 30
NEAR, FAR = "10.99.0.1", "10.99.0.2"
BACKUP = "var/backups/device.tar.gz"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GATEWAY = "[Service]\nUser=agent\nExecStart=sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
UNIT = "openclaw-gateway.service"
# What a device has that was in use, with the mode and the owner of each.
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
BOUND = "/var/lib/platform/wizard-tls/wizard.pem"


def part(title: str) -> str:
    """The section of the document that has this title."""
    text = (ROOT / "docs/operating.md").read_text()
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def commands(title: str, block: int = 0) -> str:
    """What is typed in one of its blocks, as a script."""
    found = [body for language, body in FENCE.findall(part(title)) if language == "console"]
    typed = re.sub(r"^\$ ", "", found[block], flags=re.MULTILINE)
    # A machine of the tests has no sudo: everybody there is root.
    return re.sub(r"\bsudo ", "", typed).replace("PROFILE", "openclaw").replace("NAME", "kitchen")


def rights(here: Machine, path: str) -> str:
    return here.run("stat", "--format=%a %U:%G", path).strip()


def installed(here: Machine) -> None:
    """Have our services on a machine, and a gateway."""
    here.write(f"/etc/systemd/system/{UNIT}", GATEWAY)
    here.run("platformctl", "services", "install", "--programs=/usr/local/bin")


@pytest.fixture(scope="module")
def backup() -> Iterator[bytes]:
    """The file that a device in use was copied to."""
    with machine() as old:
        installed(old)
        wait_until(lambda: old.call("test", "-s", BOUND).returncode == 0)
        for path, (text, how) in FILES.items():
            mode, owner = how.split()
            old.write(path, text, mode)
            old.run("chown", owner, path)
        old.run("chown", "-R", "agent:agent", "/home/agent")
        old.run("systemctl", "start", UNIT)
        old.run("sh", "-ec", commands("Backup and restore"))
        assert old.run("systemctl", "is-active", UNIT) == "active\n"
        assert rights(old, f"/{BACKUP}") == "600 root:root"
        yield Path(f"/proc/{old.init}/root/{BACKUP}").read_bytes()


def test_a_restored_device_has_all_of_the_old_one_but_what_is_bound_to_that(backup: bytes) -> None:
    with writable_tree() as tree:
        with machine(tree, clean=True) as new:
            # Other users that came first have the numbers of ours.
            new.run("useradd", "--system", "somebody")
            installed(new)
            (tree / BACKUP).write_bytes(backup)
            typed = commands("Backup and restore", 1)
            assert typed.endswith("reboot\n")
            new.run("sh", "-ec", typed.removesuffix("reboot\n"))
        with machine(tree) as new:
            assert new.run("hostname") == "kitchen\n"
            for path, (text, how) in FILES.items():
                assert (path, rights(new, path)) == (path, how)
                assert new.run("cat", path) == text
            assert rights(new, "/var/lib/platform") == "1770 root:platform"
            units = (UNIT, "platform-pwa.service", "platform-wizard.service")
            states = new.call("systemctl", "is-active", *units).stdout.split()
            assert states == ["active", "active", "inactive"]
            assert "table inet platform" in new.run("nft", "list", "ruleset")
            assert "failed" not in new.run("systemctl", "--failed", "--plain", "--no-legend")


def test_what_is_bound_to_a_machine_is_in_no_backup(backup: bytes, tmp_path: Path) -> None:
    import io
    import tarfile

    with tarfile.open(fileobj=io.BytesIO(backup)) as archive:
        names = {f"/{name}" for name in archive.getnames()}
    assert set(FILES) <= names
    assert not [name for name in names if "wizard-tls" in name]


def test_a_device_can_be_set_up_again() -> None:
    with machine() as here:
        installed(here)
        state = {"version": 2, "started_at": "2026-11-20T10:00:00Z", "step": "review"}
        here.write("/etc/platform/setup-complete", "{}\n")
        here.write("/var/lib/platform/wizard-state.json", json.dumps(state), "0600")
        here.run("chown", "platform:platform", "/var/lib/platform/wizard-state.json")
        here.run("systemctl", "stop", "platform-wizard.socket", "platform-wizard.service")
        shown = here.run("sh", "-ec", commands("Set up again"))
        assert re.search(r"^https://\S+:8088/\?token=[0-9a-f]{64}$", shown, flags=re.MULTILINE)
        unit = ("systemctl", "is-active", "platform-wizard-qr.service")
        wait_until(lambda: here.call(*unit).stdout == "active\n")


@pytest.fixture(scope="module")
def proxied() -> Iterator[tuple[Machine, Network]]:
    """A device whose apps are told of a proxy, as the document says."""
    with new_network() as near, new_network() as far:
        join(far, near, {f"{FAR}/24": f"{NEAR}/24"})
        with machine(network=near) as here:
            installed(here)
            here.run("sh", "-ec", commands("Behind a reverse proxy"))
            yield here, far


def test_behind_a_proxy_both_apps_listen_on_the_device_alone(
    proxied: tuple[Machine, Network],
) -> None:
    here, beside = proxied
    for port in (8088, 8089):
        with pytest.raises(ConnectionRefusedError):
            beside.connects(NEAR, port)
    link = here.run("wizard-app", "launch-url", "--production").splitlines()[-1]
    assert link.startswith("https://setup.example.org/?token=")
    asked = (
        "import http.client as h\nfor n,p in (('dash',8089),('setup',8088),('evil',8089)):\n"
        " c=h.HTTPConnection('127.0.0.1',p);"
        "c.request('GET','/app/dashboard' if p==8089 else '/wizard/',"
        "headers={'Host':n+'.example.org','X-Forwarded-Proto':'https'});"
        "print(c.getresponse().status)\n"
    )
    assert here.run("python3", "-c", asked).split() == ["200", "401", "421"]


@pytest.mark.parametrize(
    ("name", "program", "options", "path", "expected"),
    [
        ("dash", "pwa-app", (), "/app/dashboard", 200),
        ("setup", "wizard-app", ("--behind-proxy",), "/?token=" + "a" * 64, 302),
    ],
)
def test_the_configuration_of_nginx_serves_the_app_by_its_name_over_https(
    name: str, program: str, options: tuple[str, ...], path: str, expected: int, tmp_path: Path
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
    certificate = make_certificate(tmp_path / "certificate", f"DNS:{name}.example.org")
    with served(program, environment, tmp_path / "log", *options) as app:
        extra = block[block.index("location") : block.rindex("}")]
        extra = re.sub(r"127\.0\.0\.1:808\d", f"127.0.0.1:{app.port}", extra)
        extra = extra.replace("/etc/nginx/dashboard.users", str(users))
        with nginx(tmp_path, tmp_path / "nginx", extra, certificate=certificate) as proxy:
            trusting = ssl.create_default_context(cafile=str(certificate.authority))
            trusting.check_hostname = False
            login = base64.b64encode(b"owner:secret").decode()
            headers = {"Host": f"{name}.example.org"}
            if name == "dash":
                headers["Authorization"] = f"Basic {login}"
            with contextlib.closing(
                http.client.HTTPSConnection("127.0.0.1", proxy.port, context=trusting)
            ) as asked:
                asked.request("GET", path, headers=headers)
                answer = asked.getresponse()
                assert answer.status == expected, answer.read()
