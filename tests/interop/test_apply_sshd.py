"""Logging in over SSH after a device was set up: a real sshd judges `authorized_keys`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.appliances import NEAR, NEAR_V6, Appliance, appliance
from tests.support.wizard_visits import Fields

KINDS = ("ed25519", "rsa", "ecdsa")
AUTHORIZED = "/home/agent/.ssh/authorized_keys"
SECOND_PORT = 2222
FORMS: dict[str, Fields] = {
    "system": [("hostname", "kitchen"), ("timezone", "Europe/Berlin")],
    "profile": [("profile", "openclaw")],
    "provider": [("provider", "openai"), ("api_key", "sk-1"), ("skip_validation", "1")],
    "channels": [],
    "mesh-vpn": [("skip", "1")],
    "tunnel": [("choice", "skip")],
    "backup": [("kind", "skip")],
}


@pytest.fixture(scope="module")
def here() -> Iterator[Appliance]:
    """A machine that had two keys, and was set up twice, with three others and one of them."""
    with appliance() as new:
        new.machine.run("mkdir", "/keys")
        for kind in (*KINDS, "before", "restricted", "wrong"):
            new.machine.run(
                *("ssh-keygen", "-q", "-N", "", "-C", f"{kind}@home", "-f", f"/keys/{kind}"),
                *("-t", kind if kind in KINDS else "ed25519"),
            )
        # The last line has no end, and the folder is open to more than sshd bears.
        before = f'# mine\nrestrict,command="echo only this" {public(new, "restricted")}\n'
        new.machine.write(AUTHORIZED, before + public(new, "before"), mode="0644")
        new.machine.run("chown", "-R", "agent:agent", "/home/agent/.ssh")
        new.machine.run("chmod", "0777", "/home/agent/.ssh")
        ports = f"Port 22\nPort {SECOND_PORT}\nStrictModes yes\nPasswordAuthentication no\n"
        new.machine.write("/etc/ssh/sshd_config.d/ports.conf", ports)
        new.machine.run("systemctl", "restart", "ssh.service")
        lines = "\r\n".join(public(new, kind) for kind in KINDS)
        new.serve().set_up({**FORMS, "ssh": [("ssh_keys", lines)]})
        again = {**FORMS, "ssh": [("ssh_keys", public(new, "rsa"))]}
        new.begin_anew().set_up(again)
        yield new


def public(here: Appliance, name: str) -> str:
    """The line of a public key."""
    return here.read(f"/keys/{name}.pub").strip()


def logs_in(here: Appliance, key: str, *, address: str = NEAR, port: int = 22) -> tuple[int, str]:
    """How `ssh` ends, from the other network, and what it prints."""
    done = here.beside(
        *("ssh", "-F", "none", f"-p{port}", "-i", f"/keys/{key}"),
        *("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "IdentitiesOnly=yes"),
        *("-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", f"agent@{address}"),
        *("id", "-un"),
    )
    return done.returncode, done.stdout.strip() or done.stderr.strip()


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_was_entered_lets_in(here: Appliance, kind: str) -> None:
    assert logs_in(here, kind) == (0, "agent")


def test_a_key_that_was_there_before_still_lets_in(here: Appliance) -> None:
    assert logs_in(here, "before") == (0, "agent")


def test_what_a_key_may_do_stays_as_it_was(here: Appliance) -> None:
    assert logs_in(here, "restricted") == (0, "only this")


def test_another_key_lets_nobody_in(here: Appliance) -> None:
    status, said = logs_in(here, "wrong")
    assert status == 255
    assert "Permission denied (publickey)" in said


def test_every_way_in_is_open(here: Appliance) -> None:
    assert logs_in(here, "ed25519", port=SECOND_PORT) == (0, "agent")
    assert logs_in(here, "ed25519", address=NEAR_V6) == (0, "agent")


def test_ssh_06_sshd_finds_nothing_wrong_with_modes_and_owners(here: Appliance) -> None:
    assert here.rights("/home/agent/.ssh") == "700 agent:agent"
    assert here.rights(AUTHORIZED) == "600 agent:agent"
    assert "bad ownership or modes" not in here.log()


def test_ssh_04_no_key_is_there_twice_and_none_is_lost(here: Appliance) -> None:
    lines = here.read(AUTHORIZED).splitlines()
    assert lines == [
        *("# mine", f'restrict,command="echo only this" {public(here, "restricted")}'),
        *(public(here, name) for name in ("before", *KINDS)),
    ]
