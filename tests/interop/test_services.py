"""Our units on a machine with systemd: their users, their privileges, and their restarts."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.appliances import Appliance
from tests.support.machine import Machine
from tests.support.waiting import wait_until

WEB = ("platform-pwa.service", "platform-wizard.service")
SOCKETS = ("platform-control.socket", "platform-pwa.socket", "platform-wizard.socket")
OURS = ("/run/platform", "/var/lib/platform")
FOLDERS = {
    "/etc/platform": "755 root:root",
    "/etc/platform/tunnel": "755 root:root",
    "/etc/nftables.d": "755 root:root",
    "/run/platform": "1770 root:platform",
    "/var/lib/platform": "1770 root:platform",
    "/home/agent": "750 agent:agent",
}
READ_ONLY, DENIED, FORBIDDEN = (
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
)
SECRETS = "/etc/platform/secrets.env"
SECRET = "OPENAI_API_KEY=CaNaRy-in-secrets-env\n"
ASK = """import socket
with socket.create_connection(("127.0.0.1", 8089), timeout=30) as server:
    server.sendall(b"GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n")
    print(server.makefile().readline().strip())
"""
# CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_NET_ADMIN.
HELPERS_RIGHTS = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 12
AS_WEB = ("runuser", "-u", "platform", "--")
PASSWORDS = ("/etc/passwd", "/etc/group", "/etc/shadow")
UNITS = "/usr/local/lib/systemd/system"
PROBE_UNIT = "/run/systemd/system/probe@.service"
PROBE_PLACE = "/usr/local/lib/probe"
PROBE_SAID = "/run/probe.json"
PROBE = r"""#!/usr/bin/python3 -I
import ctypes, json, mmap, os, pathlib, resource, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)

def tried(do):
    try:
        return do() or "done"
    except OSError as error:
        return os.strerror(error.errno)

def called(name, *words):
    def do():
        if getattr(libc, name)(*words) < 0:
            raise OSError(ctypes.get_errno(), name)
    return tried(do)

def written(folder):
    file = pathlib.Path(folder, "probe")
    def do():
        file.write_text("x")
        file.unlink()
    return tried(do)

status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
said = {
    "secrets": tried(lambda: open("/etc/platform/secrets.env").read()),
    "homes": tried(lambda: sorted(os.listdir("/home"))),
    "written": {folder: written(folder) for folder in sys.argv[1:]},
    "new_rights": status["NoNewPrivs"].strip() == "0",
    "rights": int(status["CapEff"], 16),
    "may_get": int(status["CapBnd"], 16),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "others": sorted(
        entry for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()
    ),
    # PTRACE_ATTACH, to process 1.
    "trace": called("ptrace", 16, 1, 0, 0),
    # CLONE_NEWUSER, and CLONE_NEWNS.
    "namespaces": [called("unshare", flag) for flag in (0x10000000, 0x20000)],
    "packets": tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()),
    "code": tried(lambda: mmap.mmap(-1, 4096, prot=7).close()),
    "mount": called("mount", b"none", b"/var/lib/platform", b"tmpfs", 0, None),
    "clock": called("settimeofday", ctypes.byref((ctypes.c_long * 2)(1, 1)), None),
    "sound": sorted(os.listdir("/dev/snd")) if os.path.isdir("/dev/snd") else None,
    "devices": sorted(set(os.listdir("/dev")) & {"kmsg", "mem", "tty1", "sda", "kvm"}),
}
print(json.dumps(said))
"""
# Settings of the program that is not run, and of its socket.
DROPPED = re.compile(
    r"^(Exec\w+|Type|Restart\w*|Standard\w+|Requires|Wants|After|PartOf|Condition\w+)=.*\n",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def booted(shared: Appliance) -> Iterator[Machine]:
    """A machine with our services and a key."""
    shared.machine.write(SECRETS, SECRET, mode="0640")
    shared.machine.run("chown", "root:agent", SECRETS)
    yield shared.machine
    shared.machine.run("rm", "-f", SECRETS, PROBE_UNIT)
    shared.machine.run("systemctl", "daemon-reload")


def probed(machine: Machine, unit: str, *folders: str) -> dict[str, Any]:
    """What a process of `unit` can do, and whether it can write to `folders`."""
    machine.write(PROBE_PLACE, PROBE, mode="0755")
    text = DROPPED.sub("", machine.run("cat", f"{UNITS}/{unit}")).partition("[Install]")[0]
    service = f"""[Service]
Type=oneshot
StandardOutput=truncate:{PROBE_SAID}
ExecStart={PROBE_PLACE} {" ".join(folders)}
"""
    machine.write(PROBE_UNIT, text.replace("[Service]\n", service, 1))
    machine.run("systemctl", "daemon-reload")
    # As a template unit, so that the template of the helper works unchanged.
    started = machine.call("systemctl", "start", "probe@x.service")
    log = machine.run("journalctl", "--no-pager", "--unit=probe@x.service")
    assert started.returncode == 0, log
    said: dict[str, Any] = json.loads(machine.run("cat", PROBE_SAID))
    return said


def test_after_install_everything_runs_and_nothing_failed(booted: Machine) -> None:
    listed = json.loads(booted.run("platformctl", "services", "list", "--json"))
    state = {one["unit"]: (one["active_state"], one["enabled"]) for one in listed}
    assert [state[unit] for unit in (*WEB, *SOCKETS)] == [("active", True)] * 5
    assert state["platform-tunnel.service"] == ("inactive", False)
    assert booted.run("systemctl", "list-units", "--failed", "--plain", "--no-legend") == ""


def test_users_and_folders_are_correct_however_often_they_are_created(
    booted: Machine,
) -> None:
    before = booted.run("cat", *PASSWORDS)
    for _ in range(2):
        booted.run("systemd-sysusers")
        booted.run("systemd-tmpfiles", "--create")
    assert {path: booted.rights(path) for path in FOLDERS} == FOLDERS
    assert booted.run("cat", *PASSWORDS) == before
    assert booted.run("id", "-nG", "platform").split() == ["platform"]


@pytest.mark.parametrize("unit", WEB)
def test_systemd_enforces_the_settings_of_the_units(booted: Machine, unit: str) -> None:
    expected = (
        *("User=platform", "NoNewPrivileges=yes", "LimitCORE=0", "LimitNOFILE=8192"),
        *("MemorySwapMax=0", "TasksMax=2048", "Restart=always", "CapabilityBoundingSet="),
        *("UMask=0077", "NeedDaemonReload=no"),
    )
    asked = ",".join(line.partition("=")[0] for line in expected)
    said = booted.run("systemctl", "show", f"--property={asked}", unit)
    assert set(said.splitlines()) == set(expected)
    groups = {WEB[0]: "systemd-journal", WEB[1]: ""}
    # The dashboard can read the journal, and the wizard cannot.
    assert booted.show(unit, "SupplementaryGroups") == groups[unit]


@pytest.mark.parametrize("unit", WEB)
def test_d12_a_web_process_cannot_read_keys_or_change_the_system(
    booted: Machine, unit: str
) -> None:
    found = probed(booted, unit, *OURS, "/etc", "/usr", "/var/lib", "/var/log", "/home/agent")
    assert found["secrets"] == DENIED
    assert found["homes"] == DENIED
    assert list(found["written"].values()) == ["done"] * 2 + [READ_ONLY] * 4 + [DENIED]
    assert (found["rights"], found["may_get"], found["new_rights"]) == (0, 0, False)


@pytest.mark.parametrize("unit", [*WEB, "platform-control@.service", "platform-tunnel.service"])
def test_wiz_06_our_processes_cannot_inspect_others(booted: Machine, unit: str) -> None:
    found = probed(booted, unit)
    assert found["core"] == [0, 0]
    assert found["trace"] == FORBIDDEN
    # Other processes are not even visible.
    if unit != "platform-control@.service":
        assert found["others"] == []
    assert found["namespaces"] == [FORBIDDEN] * 2
    assert (found["mount"], found["clock"]) == (FORBIDDEN, FORBIDDEN)
    assert found["code"] in (FORBIDDEN, DENIED)
    assert found["packets"] == "Address family not supported by protocol"
    assert found["devices"] == []


def test_the_helper_only_writes_what_it_must(booted: Machine) -> None:
    booted.run("sh", "-c", "mkdir -p /dev/snd /home/other && touch /dev/snd/controlC0")
    try:
        found = probed(
            booted, "platform-control@.service", *OURS, "/etc", "/home/agent", "/usr", "/var/log"
        )
    finally:
        booted.run("rm", "-r", "/dev/snd", "/home/other")
    assert list(found["written"].values()) == ["done"] * 4 + [READ_ONLY] * 2
    assert found["homes"] == ["agent"]
    assert found["sound"] == ["controlC0"]
    assert found["may_get"] == HELPERS_RIGHTS
    assert not found["new_rights"]


def test_the_tunnel_can_read_neither_keys_nor_data_of_the_services(booted: Machine) -> None:
    found = probed(booted, "platform-tunnel.service", *OURS, "/etc", "/var/lib")
    assert found["secrets"] == DENIED
    assert list(found["written"].values()) == [DENIED] * 2 + [READ_ONLY] * 2
    assert (found["rights"], found["may_get"]) == (0, 0)


@contextlib.contextmanager
def crashing(booted: Machine, unit: str, every_s: float = 1) -> Iterator[None]:
    """Make a service fail at every start, until the block ends."""
    change = f"/run/systemd/system/{unit}.d/crash.conf"
    booted.write(change, f"[Service]\nRestartSec={every_s}\nExecStart=\nExecStart=/bin/false\n")
    booted.run("systemctl", "daemon-reload")
    try:
        booted.call("systemctl", "restart", unit)
        yield
    finally:
        booted.run("rm", "-r", change.rpartition("/")[0])
        booted.run("systemctl", "daemon-reload")


def test_after_a_crash_loop_requests_are_answered_once_its_cause_is_fixed(booted: Machine) -> None:
    def restarts_after_a_request() -> int:
        booted.call("python3", "-c", ASK.replace("timeout=30", "timeout=0.5"))
        return int(booted.show(WEB[0], "NRestarts"))

    with crashing(booted, WEB[0], every_s=0.1):
        # By default, systemd gives up after five starts within ten seconds.
        wait_until(lambda: restarts_after_a_request() >= 7)
        assert booted.show(SOCKETS[1], "ActiveState") == "active"
    assert "200 OK" in booted.run("python3", "-c", ASK)


def test_a_crash_loop_of_the_wizard_does_not_delay_other_services(booted: Machine) -> None:
    try:
        with crashing(booted, WEB[1]):
            booted.run("timeout", "20", "systemctl", "restart", WEB[0])
            # It does not wait for the wizard; otherwise a boot would never finish.
            booted.run("timeout", "20", "systemctl", "start", "platform-wizard-qr.service")
    finally:
        booted.run("systemctl", "restart", WEB[1])


def test_ipv4_is_served_even_if_ipv6_sockets_are_ipv6_only(
    booted: Machine, shared: Appliance
) -> None:
    def restarted(only_ipv6: str) -> None:
        with shared.near.inside():
            Path("/proc/sys/net/ipv6/bindv6only").write_text(only_ipv6)
        booted.run("systemctl", "stop", "platform-pwa.service")
        booted.run("systemctl", "restart", "platform-pwa.socket")

    try:
        restarted("1")
        assert "200 OK" in booted.run("python3", "-c", ASK)
    finally:
        restarted("0")


def test_an_allowed_caller_cannot_close_the_helper_for_others(booted: Machine) -> None:
    flood = """import socket
for _ in range(300):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("/run/platform/control.sock")
"""
    booted.run(*AS_WEB, "python3", "-c", flood)
    assert booted.show(SOCKETS[0], "ActiveState") == "active"
    wait_until(lambda: booted.call(*AS_WEB, "platformctl", "model", "list").returncode == 0)


@pytest.mark.parametrize("folder", OURS)
def test_fs_08_a_link_in_place_of_a_folder_is_refused_and_named(
    booted: Machine, folder: str
) -> None:
    names = (*WEB, SOCKETS[0])
    booted.run("systemctl", "stop", *names, *SOCKETS)
    booted.run(
        "sh", "-c", f"mv {folder} {folder}.real; mkdir /elsewhere; ln -s /elsewhere {folder}"
    )
    try:
        for name in names:
            assert booted.call("systemctl", "start", name).returncode != 0
            said = booted.call("systemctl", "status", "--no-pager", name).stdout
            assert f"AssertPathIsSymbolicLink=!{folder} was not met" in said
        assert booted.run("ls", "/elsewhere") == ""
    finally:
        booted.run("sh", "-c", f"rm {folder}; rmdir /elsewhere; mv {folder}.real {folder}")
        booted.run("systemctl", "reset-failed")
        booted.run("systemctl", "start", *names, *SOCKETS)


def test_fs_08_a_folder_with_a_wrong_owner_is_corrected_at_boot(booted: Machine) -> None:
    booted.run("sh", "-c", f"chown agent:agent {' '.join(OURS)}; chmod 0777 {' '.join(OURS)}")
    # The boot runs this for all files.
    booted.run("systemd-tmpfiles", "--create", "--boot", "platform.conf")
    assert {path: booted.rights(path) for path in FOLDERS} == FOLDERS
