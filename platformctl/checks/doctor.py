"""Runs all checks at the same time, each with a time limit."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from platform_common.cli.group import warn
from platform_common.control_answers import Check, Outcome, Verdict
from platform_common.errors import AccessError, PlatformError
from platform_common.paths import PROFILES, Paths, Place
from platform_common.records import record_file
from platform_common.storage.atomic_write import ROOT
from platform_common.storage.file_lock import changing
from platformctl.checks import gateway, hardening, last_doctor, services, storage, stored
from platformctl.checks.finding import Finding, failed, skipped
from platformctl.root_helper.remote_operation import NOTHING, Nothing, RemoteOperation

_TIME_LIMIT_S = 5.0
# Only one helper at a time runs the checks. The lock is in a folder of root's.
_ALONE = Place("/etc/platform/doctor")
_ALONE_WAIT_S = 3.0
_AGAIN = "Correct that, then run platformctl doctor again"


class Row(NamedTuple):
    """One check; `machine` if it examines this machine, not the files below PLATFORM_ROOT."""

    look: Callable[[Paths], Finding]
    machine: bool = False


CHECKS: Mapping[str, Row] = {
    "active-profile-manifest": Row(gateway.active_profile_manifest),
    "records-readable": Row(stored.records_readable),
    "secrets-mode": Row(stored.secrets_mode),
    "agent-user-exists": Row(services.agent_user_exists, machine=True),
    "active-profile-unit": Row(gateway.active_profile_unit, machine=True),
    "profile-health-endpoint": Row(gateway.profile_health_endpoint),
    "data-partition-free": Row(storage.data_partition_free),
    "mounts-health": Row(storage.mounts_health, machine=True),
    "time-sync": Row(services.time_sync, machine=True),
    "ssh-key-only": Row(hardening.ssh_key_only, machine=True),
    "firewall-default-drop": Row(hardening.firewall_default_drop, machine=True),
    "apparmor-enforcing": Row(hardening.apparmor_enforcing, machine=True),
    "hardened-sysctls": Row(hardening.hardened_sysctls, machine=True),
    "fail2ban-running": Row(services.fail2ban_running, machine=True),
    "clamav-healthy": Row(services.clamav_healthy, machine=True),
    "zram-swap": Row(storage.zram_swap, machine=True),
}


def verdict(paths: Paths) -> Verdict:
    """Check the device, with the root helper's results if there is a helper.

    Raises `LockedError` while the helper works for another caller.
    """
    socket = EXAMINE.helper(paths)
    if socket is not None:
        try:
            return EXAMINE.ask(socket, NOTHING)
        except AccessError as error:
            # Without the helper, run the checks that this user may run.
            warn(error)
    found = examine(paths)
    remember(paths, found, time.time())
    return found


def _examine_alone(paths: Paths) -> Verdict:
    with changing(paths.path_of(_ALONE), wait_s=_ALONE_WAIT_S):
        found = examine(paths)
    remember(paths, found, time.time())
    return found


EXAMINE = RemoteOperation(
    "doctor",
    Nothing,
    Verdict,
    lambda paths, *_: _examine_alone(paths),
    places=(*stored.RECORDS, PROFILES),
)


def examine(
    paths: Paths, checks: Mapping[str, Row] = CHECKS, *, time_limit_s: float = _TIME_LIMIT_S
) -> Verdict:
    """Run all checks in parallel; a check that hangs or crashes is a Fail."""
    found: dict[str, Finding] = {}
    threads = {
        name: threading.Thread(
            target=lambda name=name, row=row: found.update({name: _look(row, paths)}), daemon=True
        )
        for name, row in checks.items()
    }
    deadline = time.monotonic() + time_limit_s
    for thread in threads.values():
        thread.start()
    for thread in threads.values():
        thread.join(max(0.0, deadline - time.monotonic()))
    return _verdict({name: found.get(name) or _too_long(time_limit_s) for name in checks})


def _look(row: Row, paths: Paths) -> Finding:
    if row.machine and not paths.is_machine:
        return skipped("this device is a folder, not a machine")
    try:
        return row.look(paths)
    except PlatformError as error:
        return failed(error.message, error.hint or _AGAIN)
    except OSError as error:
        return failed(AccessError.of(error.filename or "the system", error).message, _AGAIN)
    except Exception as error:  # noqa: BLE001 - a check that is wrong hides no other
        return failed(
            f"internal error: {type(error).__name__}", "Report this error: the check is faulty"
        )


def _too_long(time_limit_s: float) -> Finding:
    return failed(
        f"it did not finish within {time_limit_s:g} s",
        "See what the machine is waiting for with: dmesg -l err,warn and systemctl list-jobs",
    )


def _verdict(found: Mapping[str, Finding]) -> Verdict:
    kinds = [finding.kind for finding in found.values()]
    return Verdict(
        checks=tuple(
            Check(name, Outcome(finding.kind, finding.detail), finding.fix)
            for name, finding in found.items()
        ),
        fails=kinds.count("Fail"),
        warns=kinds.count("Warn"),
        passes=kinds.count("Pass"),
        skips=kinds.count("Skip"),
    )


def remember(paths: Paths, verdict: Verdict, now_s: float) -> None:
    """Store the result for `status` if possible; a check creates no device folder."""
    if not paths.root.is_dir():
        return
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s))
    data = last_doctor.render(last_doctor.LastDoctor(checked_at=at, fails=verdict.fails))
    with contextlib.suppress(PlatformError, OSError):
        record_file.replace(paths.path_of(last_doctor.LAST_DOCTOR), data, mode=0o644, owner=ROOT)
