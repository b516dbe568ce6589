"""Machines that lack something: one sentence says so, and nothing is left half done.

Each is a copy of Debian's files without a running systemd, in its own mount namespace.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.machine import install_programs, writable_tree
from tests.support.own_packages import shared_folders
from tests.support.setups import STATE

TIMEOUT_S = 60
# A server counts as running if it lives this long; `timeout` then exits with 124.
SERVES_S, SERVED = 4, 124
SET_UP = "etc/platform/setup-complete"
STATE_FILE = "/var/lib/platform/wizard-state.json"
USERS = "(useradd --system platform; useradd --system --create-home agent) 2>/dev/null"
PROGRAMS = ("nft", "hostnamectl", "timedatectl", "systemctl")
# A program that does nothing, successfully.
STAND_IN = "printf '#!/bin/sh\\nexit 0\\n' >/usr/local/bin/{0}; chmod +x /usr/local/bin/{0}"
READ_ONLY_ETC = "mount --bind /etc /etc; mount -o remount,ro,bind /etc"
READ_ONLY = "umount /run; mount --bind / /; mount -o remount,ro,bind /"
FULL_VAR = (
    "mkdir -p /var/lib/platform; mount -t tmpfs -o size=4k tmpfs /var/lib/platform;"
    " head -c 4096 /dev/zero >/var/lib/platform/big"
)
MODEL_SET = "platformctl model set --provider openai --key-from-stdin --yes"
WIZARD = "wizard-app serve --production --bind 127.0.0.1:9001"
DASHBOARD = "pwa-app serve --bind 127.0.0.1:9002"
APPLY = "platformctl setup apply --yes"
INSTALL = "platformctl services install"
KEY = "sk-proj-0123456789abcdef0123"
ANSWERS = {
    **STATE["answers"],
    "mesh_vpn_enabled": False,
    "tunnel_choice": "skip",
    "tunnel_name": "",
    "backup_kind": "skip",
    "backup_meta": {},
}


class Ended(NamedTuple):
    """The result of a command."""

    status: int
    output: str
    errors: str

    @property
    def sentence(self) -> str:
        """The one sentence with which the command failed."""
        assert self.status == 1, self
        assert "Traceback" not in self.output + self.errors
        (said,) = re.findall(r"^error: (.*)$", self.errors, flags=re.MULTILINE)
        return str(said)


@dataclass(frozen=True)
class Bare:
    """A machine without systemd; `lacks` are commands that run before each other command."""

    tree: Path
    libraries: list[tuple[Path, str]]
    lacks: list[str] = field(default_factory=list)

    def run(self, command: str, stdin: str = "", seconds: float = TIMEOUT_S) -> Ended:
        """Run a command there as root, for at most `seconds`."""
        within = [f"mount --rbind {here} {self.tree}{there}" for here, there in self.libraries]
        within += [f"mount -t proc proc {self.tree}/proc", f"mount -t tmpfs tmpfs {self.tree}/run"]
        asked = "; ".join([*self.lacks, "cd /", f"exec timeout {seconds} {command}"])
        script = " && ".join([*within, f"exec chroot {self.tree} sh -c {shlex.quote(asked)}"])
        namespaces = ("--mount", "--pid", "--fork", "--kill-child", "--net", "--uts", "--ipc")
        done = subprocess.run(
            ["unshare", *namespaces, "sh", "-c", script],
            input=stdin,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            capture_output=True,
            text=True,
            timeout=2 * TIMEOUT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def serves(self, command: str) -> bool:
        """Whether a server keeps running, without error messages."""
        done = self.run(command, seconds=SERVES_S)
        assert "Traceback" not in done.errors
        assert "error" not in done.errors.lower(), done
        return done.status == SERVED

    def answer(self, **answers: object) -> None:
        """Store answers to all questions, and a journal in which the key is already stored."""
        path = self.tree / STATE_FILE.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**STATE, "answers": {**ANSWERS, **answers}}))
        plan = json.loads(self.run("platformctl setup plan --json").output)
        states = {one["id"]: ("waiting", "kept")[one["phase"] == "keys"] for one in plan["actions"]}
        tried = [{"id": id_, "what": "", "state": state} for id_, state in states.items()]
        at = STATE["started_at"]
        first = json.dumps({"setup": at, "at": at, "actions": tried})
        path.with_name("apply-journal.jsonl").write_text(f"{first}\n")

    def doctor(self) -> dict[str, str]:
        """The result of each check; some checks fail."""
        done = self.run("platformctl doctor --json")
        assert (done.status, done.errors) == (1, "")
        return {one["name"]: one["outcome"]["kind"] for one in json.loads(done.output)["checks"]}

    def files(self, *folders: str) -> Mapping[str, bytes]:
        """All our files in these folders."""
        found = [path for folder in folders for path in (self.tree / folder).rglob("*")]
        return {
            str(path.relative_to(self.tree)): path.read_bytes()
            for path in found
            if path.is_file() and not path.name.endswith(".lock")
        }


@pytest.fixture(scope="module")
def programs() -> Iterator[tuple[Path, list[tuple[Path, str]]]]:
    """The files of a machine with our programs, and the folders that they need."""
    libraries = list(shared_folders())
    with writable_tree() as tree:
        install_programs(tree)
        for _, there in libraries:
            (tree / there.lstrip("/")).mkdir()
        yield tree, libraries


@pytest.fixture
def bare(programs: tuple[Path, list[tuple[Path, str]]]) -> Iterator[Bare]:
    """A fresh machine."""
    below, libraries = programs
    with writable_tree(below) as tree:
        yield Bare(tree, libraries)


@pytest.mark.long
def test_without_systemd_and_users_the_apps_serve_and_commands_answer(bare: Bare) -> None:
    assert bare.serves(WIZARD)
    assert bare.serves(DASHBOARD)
    status = bare.run("platformctl status --json")
    assert (status.status, status.errors) == (0, "")
    assert json.loads(status.output)["active_state"] == "unavailable"
    assert bare.doctor()["agent-user-exists"] == "Fail"
    stored = bare.run(MODEL_SET, KEY)
    assert (stored.status, stored.errors) == (0, "")
    secrets = bare.tree / "etc/platform/secrets.env"
    # Without the group of the gateways, nobody else may read it.
    assert secrets.stat().st_mode & 0o7777 == 0o600


def test_without_systemd_no_service_is_installed(bare: Bare) -> None:
    before = bare.files("usr/local", "etc/systemd")
    done = bare.run(INSTALL)
    assert done.sentence == "systemd does not run here"
    assert "--root" in done.errors
    assert bare.files("usr/local", "etc/systemd") == before


@pytest.mark.long
def test_without_systemd_setup_stops_at_the_first_action_that_needs_it(bare: Bare) -> None:
    bare.lacks.append(USERS)
    bare.answer()
    assert "hostnamectl" in bare.run(APPLY).sentence
    assert "kitchen" not in bare.files("etc").get("etc/hostname", b"").decode()
    assert not (bare.tree / SET_UP).exists()
    assert '"failed"' in bare.run("platformctl setup status --json").output


@pytest.mark.long
def test_without_the_user_of_the_gateways_files_belong_to_root_and_doctor_reports_it(
    bare: Bare,
) -> None:
    bare.answer()
    bare.lacks.extend(map(STAND_IN.format, PROGRAMS))
    done = bare.run(APPLY)
    assert (done.status, done.errors) == (0, "")
    keys = (bare.tree / "home/agent/.ssh/authorized_keys").stat()
    assert (keys.st_uid, keys.st_mode & 0o7777) == (0, 0o600)
    assert bare.doctor()["agent-user-exists"] == "Fail"


@pytest.mark.long
def test_on_a_read_only_etc_commands_fail_and_change_nothing(bare: Bare) -> None:
    bare.lacks.append(USERS)
    bare.answer()
    bare.lacks.append(READ_ONLY_ETC)
    before = bare.files("etc")
    for command, stdin in ((MODEL_SET, KEY), (APPLY, ""), ("wizard-app console --production", "")):
        done = bare.run(command, stdin)
        assert done.sentence
    assert bare.files("etc") == before
    assert bare.serves(WIZARD)
    assert bare.serves(DASHBOARD)


@pytest.mark.long
def test_on_a_read_only_machine_each_command_reports_it(bare: Bare) -> None:
    bare.lacks.append(READ_ONLY)
    before = bare.files("etc", "var/lib")
    for command, stdin in ((MODEL_SET, KEY), (WIZARD, ""), (DASHBOARD, "")):
        done = bare.run(command, stdin, seconds=20)
        assert re.search("Read-only file system|no writable folder", done.sentence)
    status = bare.run("platformctl status")
    assert (status.status, status.errors) == (0, "")
    assert bare.doctor()
    assert bare.files("etc", "var/lib") == before


@pytest.mark.long
def test_a_full_disk_only_prevents_the_wizard_from_starting(bare: Bare) -> None:
    bare.lacks.extend((USERS, FULL_VAR))
    wizard = bare.run(WIZARD, seconds=20)
    assert "No space left on device" in wizard.sentence
    assert bare.serves(DASHBOARD)
    assert bare.run(MODEL_SET, KEY).status == 0
    assert bare.run("platformctl status").status == 0


@pytest.mark.long
def test_without_the_library_for_certificates_the_wizard_says_what_to_install(bare: Bare) -> None:
    program = bare.tree / "usr/local/bin/wizard-app"
    hidden = "import sys; sys.modules['cryptography'] = None"
    program.write_text(program.read_text().replace("\nimport", f"\n{hidden}\nimport", 1))
    done = bare.run(WIZARD)
    assert "cryptography" in done.sentence
    assert "platform-appliance[web,wizard]" in done.errors


@pytest.mark.long
def test_without_tailscale_setup_says_so_before_it_changes_anything(bare: Bare) -> None:
    bare.lacks.append(USERS)
    bare.answer(mesh_vpn_enabled=True)
    before = bare.files("etc")
    done = bare.run(APPLY)
    assert done.sentence
    assert bare.files("etc") == before
