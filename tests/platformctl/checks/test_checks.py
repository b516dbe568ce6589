"""The rules of `doctor`'s checks, on samples from real machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from platformctl.checks.finding import Finding
from platformctl.checks.gateway import judge_unit
from platformctl.checks.hardening import (
    judge_apparmor,
    judge_firewall,
    judge_ssh,
    judge_sysctls,
)
from platformctl.checks.services import judge_clock
from platformctl.checks.storage import judge_mounts, judge_room, judge_swap
from platformctl.services.systemd import UnitState

MB = 1_000_000


def judged(finding: Finding) -> tuple[str, str]:
    """The kind and the detail of a finding; only warnings and failures have a fix."""
    assert bool(finding.fix) == (finding.kind in {"Warn", "Fail"})
    return finding.kind, finding.detail


def test_free_space_below_500_mb_is_a_warning_and_below_50_mb_a_failure() -> None:
    for free_bytes, kind in (
        *((0, "Fail"), (50 * MB - 1, "Fail")),
        *((50 * MB, "Warn"), (500 * MB - 1, "Warn"), (500 * MB, "Pass")),
    ):
        assert judged(judge_room(Path("/home"), free_bytes, no_nodes=False))[0] == kind
    # A disk full of small files cannot take another file either.
    finding = judge_room(Path("/home"), 10**12, no_nodes=True)
    assert judged(finding) == ("Fail", "/home has no free inode, so no file can be created")


ROOT = "25 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro"
READ_ONLY = ROOT.replace("/ / rw,", "/ / ro,")
HOME = "26 25 0:5 / /home ro - tmpfs tmpfs rw"
NOT_OURS = ["26 25 0:5 / /boot/efi ro - vfat /dev/vda15 ro", "27 25 0:6 / /snap ro - x y ro"]
SEVERAL_FIELDS = "26 25 0:5 / /var/lib/platform rw master:3 - ext4 /dev/x ro,noload"
FOR_A_SERVICE = ROOT.replace("rw,relatime shared:1", "ro,relatime shared:2 master:1")
MOUNTS = {
    "all-writable": ([ROOT], ""),
    "read-only-mount": ([READ_ONLY], "/"),
    "read-only-file-system": ([ROOT.replace("vda1 rw,", "vda1 ro,")], "/"),
    "for-a-service-alone": ([FOR_A_SERVICE], ""),
    "the-data": ([ROOT, HOME], "/home"),
    "covered-by-a-later-mount": ([ROOT, HOME, "27 26 0:6 / /home rw - ext4 /dev/b rw"], ""),
    "a-writable-mount-below": ([READ_ONLY, HOME.replace(" ro ", " rw ")], "/"),
    "others-may-be-read-only": ([ROOT, *NOT_OURS], ""),
    "a-blank": ([ROOT, r"26 25 0:5 / /mnt/a\040b ro - ext4 /dev/x ro"], ""),
    "other-lines": ([ROOT, "26 25 0:5", "", "nonsense"], ""),
    "more-than-one-optional-field": ([ROOT, SEVERAL_FIELDS], "/var/lib/platform"),
}


@pytest.mark.parametrize(("lines", "read_only"), MOUNTS.values(), ids=MOUNTS)
def test_writable_folders_must_not_be_mounted_read_only(lines: list[str], read_only: str) -> None:
    finding = judge_mounts("\n".join(lines), ["/", "/var/lib/platform", "/home", "/home/agent"])
    expected = ("Fail", f"{read_only} is mounted read-only") if read_only else ("Pass", "")
    assert judged(finding) == expected


SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


def test_swap_should_be_in_compressed_memory() -> None:
    compressed = "/dev/zram0                              partition\t2097148\t\t0\t\t100\n"
    in_a_file = "/swapfile                               file\t\t2097148\t\t0\t\t-2\n"
    assert judged(judge_swap(SWAPS + compressed))[0] == "Pass"
    for swaps in (SWAPS + in_a_file, SWAPS, ""):
        assert judged(judge_swap(swaps))[0] == "Warn"


GOOD_SYSCTLS = {
    "net.ipv4.tcp_syncookies": "1",
    "kernel.kptr_restrict": "2",
    "kernel.dmesg_restrict": "1",
    "net.ipv4.conf.all.rp_filter": "1",
}


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({}, ""),
        ({"kernel.kptr_restrict": "0"}, "kernel.kptr_restrict is 0, not 1"),
        (
            {"kernel.dmesg_restrict": "0", "net.ipv4.conf.all.rp_filter": "2"},
            "kernel.dmesg_restrict is 0, not 1; net.ipv4.conf.all.rp_filter is 2, not 1",
        ),
        ({"net.ipv4.tcp_syncookies": None}, ""),
    ],
    ids=["good", "one", "two", "a-kernel-without-it"],
)
def test_wrong_kernel_settings_are_a_warning_with_a_command(
    changes: dict[str, str | None], detail: str
) -> None:
    finding = judge_sysctls({**GOOD_SYSCTLS, **changes})
    assert judged(finding) == ("Warn" if detail else "Pass", detail)
    if detail:
        assert finding.fix.startswith(f"Run sysctl -w {' '.join(f'{n}=1' for n in changes)}, ")


EFFECTIVE = {
    "port": "22",
    "permitrootlogin": "without-password",
    "passwordauthentication": "no",
    "kbdinteractiveauthentication": "no",
    "permitemptypasswords": "no",
}


def test_password_logins_and_unknown_settings_of_sshd_fail_and_root_logins_by_key_pass() -> None:
    def kind(**changes: str) -> str:
        output = "".join(f"{name} {value}\n" for name, value in {**EFFECTIVE, **changes}.items())
        return judged(judge_ssh(output, "root"))[0]

    for setting in [name for name in EFFECTIVE if name != "port"]:
        assert (kind(**{setting: "yes"}), kind(**{setting: "no"})) == ("Fail", "Pass")
    for value in ("without-password", "prohibit-password", "forced-commands-only"):
        assert kind(permitrootlogin=value) == "Pass"
    assert judged(judge_ssh("", "root"))[0] == "Fail"


PROFILES = """/usr/bin/man (enforce)
man_filter (enforce)
/usr/sbin/tcpdump (complain)
"""


@pytest.mark.parametrize(
    ("enabled", "profiles", "expected"),
    [
        ("Y", PROFILES, ("Pass", "2 profiles enforced")),
        ("Y", "", ("Fail", "no program is confined")),
        ("Y", "a (complain)\n", ("Fail", "no program is confined")),
        ("Y", None, ("Skip", "securityfs is not mounted")),
        ("N", None, ("Fail", "AppArmor is switched off")),
        (None, None, ("Warn", "this kernel has no AppArmor")),
    ],
    ids=["enforced", "no-profile", "complaining", "not-mounted", "off", "not-in-the-kernel"],
)
def test_apparmor_must_enforce_something(
    enabled: str | None, profiles: str | None, expected: tuple[str, str]
) -> None:
    assert judged(judge_apparmor(enabled, profiles)) == expected


CHAIN: dict[str, Any] = {"family": "inet", "table": "platform", "name": "input", "handle": 1}
CHAIN |= {"type": "filter", "hook": "input", "prio": 0, "policy": "drop"}
LOOPBACK = {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "lo"}}
COUNTER = {"counter": {"packets": 0, "bytes": 0}}


def ruleset(chain: dict[str, Any], *rules: list[dict[str, Any]]) -> bytes:
    """The output of `nft -j list table inet platform` with this chain."""
    things: list[dict[str, Any]] = [
        {"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
        {"table": {"family": "inet", "name": "platform", "handle": 1}},
        {"chain": chain},
        {"chain": {"family": "inet", "table": "platform", "name": "other", "handle": 9}},
        *({"rule": {"chain": "input", "handle": 2, "expr": rule}} for rule in rules),
        {"rule": {"chain": "other", "handle": 3, "expr": [{"accept": None}]}},
    ]
    return json.dumps({"nftables": things}).encode()


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (ruleset(CHAIN), "Pass"),
        (ruleset(CHAIN, [LOOPBACK, {"accept": None}]), "Pass"),
        (ruleset(CHAIN | {"policy": "accept"}), "Fail"),
        (ruleset(CHAIN | {"hook": "output"}), "Fail"),
        (ruleset(CHAIN, [{"accept": None}]), "Fail"),
        (ruleset(CHAIN, [COUNTER, {"accept": None}]), "Fail"),
        (b'{"nftables": []}', "Fail"),
    ],
    ids=["drops", "with-a-rule", "accepts", "other-hook", "accepts-all", "counts-first", "empty"],
)
def test_unrequested_input_must_be_dropped(table: bytes, kind: str) -> None:
    assert judged(judge_firewall(table))[0] == kind


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (UnitState(), ("Skip", "systemd does not answer")),
        (UnitState("inactive", "not-found"), ("Fail", "x.service is not installed")),
        (UnitState("active", "loaded", enabled=True), ("Pass", "x.service")),
        (UnitState("active", "loaded"), ("Warn", "x.service will not start at boot")),
        (UnitState("activating", "loaded"), ("Warn", "x.service is activating")),
        (UnitState("failed", "loaded"), ("Fail", "x.service is failed")),
        (UnitState("inactive", "loaded"), ("Fail", "x.service is inactive")),
    ],
    ids=lambda value: value.active_state if isinstance(value, UnitState) else value[0],
)
def test_the_gateway_must_run(state: UnitState, expected: tuple[str, str]) -> None:
    assert judged(judge_unit("x.service", state)) == expected


@pytest.mark.parametrize(("said", "kind"), [("yes", "Pass"), ("no", "Fail"), ("", "Fail")])
def test_the_clock_must_be_synchronised(said: str, kind: str) -> None:
    assert judged(judge_clock(said))[0] == kind
