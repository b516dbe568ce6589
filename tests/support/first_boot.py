"""A device from its first boot on: its files, its visitors, and its state.

Its gateway, `tailscale` and `cloudflared` are small stand-ins; everything else is real.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.debian_package import built_package
from tests.support.machine import run_in, writable_tree
from tests.support.waiting import wait_until
from tests.support.wizard_visits import Fields, Visitor

WIZARD_PORT, DASHBOARD_PORT = 8088, 8089
GATEWAY = "openclaw-gateway.service"
# The SSH key for logging in.
LOGIN = "/srv/login"
STARTS = "/var/lib/openclaw-gateway/starts"
# With every symbol that some encoding changes, among those that a key can have.
CANARIES = {
    name: f"CaNaRy+{number:02}/{name}<&>%7E=="
    for number, name in enumerate(("provider", "mesh", "tunnel", "store", "rotated"))
}
CREDENTIALS = json.dumps({"TunnelSecret": CANARIES["tunnel"], "TunnelName": "kitchen"})
# Records its environment, and answers on the port of the profile.
_GATEWAY = """#!/usr/bin/python3 -I
import json, os, pathlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
records = {
    path.name: path.read_text().strip()
    for path in pathlib.Path("/etc/platform").glob("active-*")
}
seen = {"environ": dict(os.environ), "records": records, "host": os.uname().nodename}
seen["firewall"] = os.path.exists("/etc/nftables.d/platform.nft")
with open(os.environ["STATE_DIRECTORY"] + "/starts", "a") as log:
    log.write(json.dumps(seen) + "\\n")

class Answer(BaseHTTPRequestHandler):
    def _send(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self._send({"status": "ok"})

    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send({"reply": "You said: " + told["message"]})

    def log_message(self, *words):
        pass

ThreadingHTTPServer(("127.0.0.1", 8080), Answer).serve_forever()
"""
_UNIT = """[Unit]
Description=Stand-in for the gateway of OpenClaw
[Service]
User=agent
EnvironmentFile=/etc/platform/secrets.env
StateDirectory=%N
ExecStart=/usr/local/lib/stand-in-gateway
[Install]
WantedBy=multi-user.target
"""
# Gets its key in a file that only root can read, and does not print it.
_TAILSCALE = """#!/bin/sh
case "$*" in
up\\ --auth-key=file:*) key=${2#--auth-key=file:}; stat -c '%a %U' "$key" && wc -c <"$key";;
*) exit 1;;
esac
"""
# Says that it is connected, as the real program does.
_CLOUDFLARED = """#!/usr/bin/python3 -I
import os, signal, socket
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
    told.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
signal.pause()
"""
_PROGRAMS = {
    "/usr/local/lib/stand-in-gateway": _GATEWAY,
    "/usr/local/bin/tailscale": _TAILSCALE,
    "/usr/local/bin/cloudflared": _CLOUDFLARED,
}


def forms(tree: Path) -> Mapping[str, Fields]:
    """The answers to each step, in order."""
    return {
        "system": [("hostname", "kitchen"), ("timezone", "Asia/Kathmandu")],
        "profile": [("profile", "openclaw")],
        "provider": [
            *(("provider", "openrouter"), ("api_key", CANARIES["provider"])),
            ("skip_validation", "1"),
        ],
        "channels": [("channels", "telegram")],
        "ssh": [("ssh_keys", (tree / f"{LOGIN}.pub".lstrip("/")).read_text())],
        "mesh-vpn": [("authkey", CANARIES["mesh"])],
        "tunnel": [("choice", "named"), ("credentials", CREDENTIALS)],
        "backup": [
            *(("kind", "store_a"), ("a_account_id", "0012ab"), ("a_bucket", "kitchen")),
            ("a_application_key", CANARIES["store"]),
        ],
    }


# The steps with a secret, which is only in the wizard's memory.
SECRET_STEPS = ("provider", "mesh-vpn", "tunnel", "backup")


@dataclass(frozen=True)
class Device:
    """A running device: runs commands in it as root, and connects to its ports."""

    call: Callable[..., subprocess.CompletedProcess[str]]
    connect: Callable[[int], http.client.HTTPConnection]

    def run(self, *argv: str, stdin: str = "") -> str:
        """Run a command, which must succeed; return its output."""
        done = self.call(*argv, stdin=stdin)
        assert done.returncode == 0, (argv, done)
        return done.stdout

    def wait_until_served(self, port: int = WIZARD_PORT) -> None:
        """Wait until the app at that port answers."""
        wait_until(lambda: self.answers(port))

    def answers(self, port: int) -> bool:
        """Whether the app at that port answers."""
        try:
            return Visitor(lambda: self.connect(port)).ask("/healthz").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def link(self) -> str:
        """The path of a link that opens the wizard, made by the user that runs it."""
        self.wait_until_served()
        as_platform = ("runuser", "-u", "platform", "--")
        told = self.run(*as_platform, "wizard-app", "launch-url", "--production", "--json")
        return "/?" + str(json.loads(told)["url"]).partition("?")[2]

    def visitor(self, link: str = "") -> Visitor:
        """A visitor who has opened a link, by default a new one."""
        found = Visitor(lambda: self.connect(WIZARD_PORT))
        entered = found.ask(link or self.link())
        assert entered.status == 302, entered
        return found

    def dashboard(self) -> Visitor:
        """A visitor of the dashboard."""
        self.wait_until_served(DASHBOARD_PORT)
        return Visitor(lambda: self.connect(DASHBOARD_PORT))

    def secrets_asked(self) -> list[str]:
        """The steps whose secrets the wizard asks for."""
        told = json.loads(self.run("platformctl", "setup", "plan", "--json"))
        return sorted({one["step"] for one in told["secrets"]})

    def seen_by_gateway(self) -> list[dict[str, Any]]:
        """The records of the gateway, one for each start."""
        return [json.loads(line) for line in self.call("cat", STARTS).stdout.splitlines()]


@contextlib.contextmanager
def installed() -> Iterator[Path]:
    """The files of a device with our package, before its first boot."""
    package = built_package()
    with writable_tree() as tree:
        for path, text in _PROGRAMS.items():
            program = tree / path.lstrip("/")
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)
        (tree / "etc/systemd/system" / GATEWAY).write_text(_UNIT)
        run_in(tree, "dpkg", "--install", str(package), shared=[package])
        run_in(tree, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", LOGIN)
        yield tree
