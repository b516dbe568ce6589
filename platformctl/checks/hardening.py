"""Checks of protection against intruders."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from platform_common.paths import Paths
from platformctl.checks.finding import (
    ROOT_ONLY,
    Finding,
    answer,
    failed,
    kernel_text,
    passed,
    program,
    skipped,
    warned,
)
from wizard_app.setup.plan.firewall import RULES

# Each setting, and its good values.
_SYSCTLS: Mapping[str, tuple[str, ...]] = {
    "net.ipv4.tcp_syncookies": ("1", "2"),
    "kernel.kptr_restrict": ("1", "2"),
    "kernel.dmesg_restrict": ("1",),
    "net.ipv4.conf.all.rp_filter": ("1",),
}
# What `sshd -T` must print for every login.
_SSH: Mapping[str, tuple[str, ...]] = {
    "passwordauthentication": ("no",),
    "kbdinteractiveauthentication": ("no",),
    "permitemptypasswords": ("no",),
    "permitrootlogin": ("no", "prohibit-password", "without-password", "forced-commands-only"),
}
# Users and addresses to ask for, because a Match block may apply to some of them.
_SSH_CALLERS = tuple(
    (user, address) for user in ("root", "agent") for address in ("192.168.0.2", "203.0.113.2")
)
_SECURITYFS = Path("/sys/kernel/security/apparmor/profiles")


def hardened_sysctls(paths: Paths) -> Finding:
    """Whether the kernel hides its addresses and its log, and drops forged packets."""
    folder = Path("/proc/sys")
    return judge_sysctls({name: kernel_text(folder / name.replace(".", "/")) for name in _SYSCTLS})


def judge_sysctls(values: Mapping[str, str | None]) -> Finding:
    """Warn of bad settings; settings that this kernel does not have are ignored."""
    wrong = {
        name: f"{value}, not {_SYSCTLS[name][0]}"
        for name, value in values.items()
        if value is not None and value not in _SYSCTLS[name]
    }
    if not wrong:
        return passed()
    settings = " ".join(f"{name}={_SYSCTLS[name][0]}" for name in wrong)
    return warned(
        "; ".join(f"{name} is {problem}" for name, problem in wrong.items()),
        f"Run sysctl -w {settings}, and put the same settings into /etc/sysctl.d/60-platform.conf",
    )


def ssh_key_only(paths: Paths) -> Finding:
    """Whether sshd, as it reads its own configuration, refuses every password."""
    sshd = program("sshd")
    if sshd is None:
        return skipped("there is no ssh server")
    if os.geteuid() != 0:
        return skipped(ROOT_ONLY)
    for user, address in _SSH_CALLERS:
        said = answer(sshd, "-T", "-C", f"user={user},host={address},addr={address}")
        if said.status and "privilege separation directory" in said.last_line:
            return skipped("the ssh server is not running")
        if said.status:
            return failed(
                f"sshd cannot read its configuration: {said.last_line}",
                "Correct the line that sshd -t names, then run systemctl reload ssh",
            )
        finding = judge_ssh(said.output.decode("utf-8", "replace"), f"{user} from {address}")
        if finding.kind != "Pass":
            return finding
    return passed()


def judge_ssh(effective: str, caller: str) -> Finding:
    """Fail if the output of `sshd -T` allows `caller` to log in with a password."""
    said = dict(line.split(" ", 1) for line in effective.splitlines() if " " in line)
    wrong = [name for name, values in _SSH.items() if said.get(name) not in values]
    if not wrong:
        return passed()
    settings = ", ".join(f"{name} {said.get(name, '(nothing)')}" for name in wrong)
    wanted = ", ".join(f"{name} {_SSH[name][0]}" for name in wrong)
    return failed(
        f"for {caller}, sshd reports {settings}",
        f"Put {wanted} into /etc/ssh/sshd_config.d/00-platform.conf, one a line,"
        " see that no Match block says otherwise, then run systemctl reload ssh",
    )


def apparmor_enforcing(paths: Paths) -> Finding:
    """Whether programs are confined by AppArmor."""
    enabled = kernel_text(Path("/sys/module/apparmor/parameters/enabled"))
    if enabled is not None and enabled.startswith("Y") and os.geteuid() != 0:
        return skipped(ROOT_ONLY)
    return judge_apparmor(enabled, kernel_text(_SECURITYFS))


def judge_apparmor(enabled: str | None, profiles: str | None) -> Finding:
    """Fail if AppArmor is off or enforces nothing; warn if the kernel does not have it."""
    if enabled is None:
        return warned(
            "this kernel has no AppArmor",
            "Boot a kernel that has it, such as the one in the package linux-image-amd64 or -arm64",
        )
    if not enabled.startswith("Y"):
        return failed(
            "AppArmor is switched off",
            "Remove apparmor=0 from the kernel's command line (GRUB_CMDLINE_LINUX in"
            " /etc/default/grub), run update-grub and reboot",
        )
    if profiles is None:
        return skipped("securityfs is not mounted")
    enforced = profiles.count("(enforce)")
    if not enforced:
        return failed(
            "no program is confined",
            "Run apt install apparmor apparmor-profiles, then systemctl restart apparmor",
        )
    return passed(f"{enforced} profiles enforced")


def firewall_default_drop(paths: Paths) -> Finding:
    """Whether the firewall drops incoming packets by default."""
    nft = program("nft")
    if nft is None:
        return failed("nftables is not installed", "Install it with: apt install nftables")
    if os.geteuid() != 0:
        return skipped(ROOT_ONLY)
    said = answer(nft, "-j", "list", "table", "inet", "platform")
    if said.status:
        return _no_table()
    return judge_firewall(said.output)


def judge_firewall(ruleset: bytes) -> Finding:
    """Fail unless the table, as `nft -j` shows it, drops input by default."""
    things: list[dict[str, Any]] = json.loads(ruleset)["nftables"]
    chains = [
        thing["chain"]
        for thing in things
        if thing.get("chain", {}).get("hook") == "input" and thing["chain"]["policy"] == "drop"
    ]
    if not chains:
        return _no_table()
    names = {chain["name"] for chain in chains}
    for rule in (thing["rule"] for thing in things if "rule" in thing):
        # A rule that accepts without a condition makes the policy useless.
        verdicts = [part for part in rule["expr"] if not part.keys() & {"counter", "log"}]
        if rule["chain"] in names and verdicts == [{"accept": None}]:
            return failed(
                f"a rule of the chain {rule['chain']} accepts everything",
                f"Remove it from {RULES}, then run nft -f {RULES}",
            )
    return passed()


def _no_table() -> Finding:
    return failed(
        "the table inet platform does not drop input by default",
        f"Run nft -f {RULES}, which the setup wizard writes",
    )
