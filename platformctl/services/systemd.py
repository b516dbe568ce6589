"""Asks systemd for the state of units, and enables or disables one."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from platform_common.control_answers import UNAVAILABLE
from platform_common.errors import PlatformError
from platform_common.process.run import ProcessError, run

_ASK_TIMEOUT_S = 3.0
_SWITCH_TIMEOUT_S = 30.0
_PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "ActiveEnterTimestampMonotonic")
_NAME = re.compile(r"[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]{0,254}")
_UP = ("active", "reloading", "refreshing")


class UnitState(Struct, frozen=True):
    """The state of a unit; `unavailable` if it could not be determined."""

    active_state: str = UNAVAILABLE
    load_state: str = UNAVAILABLE
    enabled: bool = False
    uptime_seconds: int | None = None


def unit_states(units: Sequence[str]) -> Mapping[str, UnitState]:
    """The state of each of `units`, from one call of systemctl.

    Never raises: without systemd, or without a valid answer in time, all are
    `unavailable`.
    """
    states = dict.fromkeys(units, UnitState())
    # Not a valid unit name; `*` would match several units.
    named = [unit for unit in units if _NAME.fullmatch(unit)]
    if not named:
        return states
    question = ("systemctl", "show", f"--property={','.join(_PROPERTIES)}", "--", *named)
    try:
        answer = run(question, timeout_s=_ASK_TIMEOUT_S)
    except ProcessError:
        return states
    blocks = answer.output.decode("utf-8", "replace").strip().split("\n\n")
    if answer.status == 0 and len(blocks) == len(named):
        now_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        states |= {unit: parse(block, now_s) for unit, block in zip(named, blocks, strict=True)}
    return states


def parse(block: str, now_s: float) -> UnitState:
    """Parse a block of `systemctl show`; `now_s` is on the monotonic clock."""
    said = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    if not said.get("ActiveState") or not said.get("LoadState"):
        return UnitState()
    # Microseconds on the monotonic clock; 0 for a unit that was never active.
    entered = said.get("ActiveEnterTimestampMonotonic", "")
    since_s = int(entered) / 1e6 if re.fullmatch(r"[0-9]{1,18}", entered) else 0.0
    up = said["ActiveState"] in _UP and 0 < since_s <= now_s
    return UnitState(
        active_state=said["ActiveState"],
        load_state=said["LoadState"],
        enabled=said.get("UnitFileState", "").startswith("enabled"),
        uptime_seconds=int(now_s - since_s) if up else None,
    )


def switch(unit: str, *, on: bool) -> None:
    """Start or stop `unit`, now and at every boot; raises `PlatformError`."""
    verb = "enable" if on else "disable"
    done = run(("systemctl", verb, "--now", "--", unit), timeout_s=_SWITCH_TIMEOUT_S)
    if done.status:
        said = done.last_line or f"it ended with status {done.status}"
        raise PlatformError(
            f"systemctl could not {verb} {unit}: {said}",
            hint=f"See why with: systemctl status {unit}",
        )
