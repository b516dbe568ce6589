"""Checks of the machine's services and clock."""

from __future__ import annotations

import pwd
import re
import time
from pathlib import Path

from platform_common.control_answers import UNAVAILABLE
from platform_common.paths import Paths
from platformctl.checks.finding import (
    NO_SYSTEMD,
    Finding,
    answer,
    failed,
    kernel_text,
    passed,
    program,
    skipped,
    warned,
)
from platformctl.services.systemd import unit_states

_CLAMAV_NEEDS_KIB = 2 * 1024 * 1024
_SIGNATURES = Path("/var/lib/clamav")
_OLD_S = 7 * 86_400


def agent_user_exists(paths: Paths) -> Finding:
    """Whether the user that the gateways run as exists."""
    try:
        pwd.getpwnam("agent")
    except KeyError:
        return failed(
            "there is no user called agent, under which the gateways run",
            "Create it with: adduser --system --group --shell /bin/sh agent",
        )
    return passed()


def fail2ban_running(paths: Paths) -> Finding:
    """Whether fail2ban, if installed, runs and blocks password guessing."""
    return _running("fail2ban.service", "fail2ban-server")


def clamav_healthy(paths: Paths) -> Finding:
    """Whether the virus scanner runs with signatures that are less than a week old."""
    memory = re.search(
        r"^MemTotal: +([0-9]+) kB", kernel_text(Path("/proc/meminfo")) or "", re.MULTILINE
    )
    if memory and int(memory[1]) < _CLAMAV_NEEDS_KIB:
        return skipped("this device has less than 2 GiB of memory")
    running = _running("clamav-daemon.service", "clamd")
    if running.kind != "Pass":
        return running
    newest = max((path.stat().st_mtime for path in _SIGNATURES.glob("daily.c[lv]d")), default=0.0)
    if time.time() - newest > _OLD_S:
        return warned(
            "the signatures are older than a week",
            "Run systemctl enable --now clamav-freshclam, and see journalctl -u clamav-freshclam",
        )
    return passed()


def _running(unit: str, name: str) -> Finding:
    if program(name) is None:
        return skipped(f"{name} is not installed")
    state = unit_states([unit])[unit]
    if state.active_state in {"active", UNAVAILABLE}:
        return passed() if state.active_state == "active" else skipped(NO_SYSTEMD)
    return failed(f"{unit} is {state.active_state}", f"Run: systemctl enable --now {unit}")


def time_sync(paths: Paths) -> Finding:
    """Whether the clock is synchronised."""
    if program("timedatectl") is None:
        return skipped("there is no timedatectl")
    said = answer("timedatectl", "show", "--property=NTPSynchronized", "--value")
    if said.status:
        return skipped(f"timedatectl cannot say: {said.last_line}")
    return judge_clock(said.output.decode("utf-8", "replace").strip())


def judge_clock(synchronised: str) -> Finding:
    """Fail if the clock is not synchronised: certificates and signatures depend on it."""
    if synchronised == "yes":
        return passed()
    return failed(
        "the clock is not synchronised",
        "Run apt install systemd-timesyncd and timedatectl set-ntp true, and check that the"
        " network reaches a time server",
    )
