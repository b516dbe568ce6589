"""What the device is doing right now."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from platform_common.errors import PlatformError
from platform_common.installed_profiles import active_profile
from platform_common.paths import ACTIVE_PROFILE, LAST_DOCTOR, Found, Paths
from platform_common.records import record_file
from platform_common.records.record_file import MissingRecordError
from platform_common.views import Agent, Status, Tunnel
from platformctl.systemd import UnitState, unit_states

TUNNEL_UNIT = "platform-tunnel.service"
T = TypeVar("T")


class Now(NamedTuple):
    """The state, and what kept us from knowing a part of it, once each."""

    status: Status
    problems: tuple[PlatformError, ...]


def status(paths: Paths) -> Now:
    """The state of the device; what cannot be known has its default and is a problem."""
    problems: dict[str, PlatformError] = {}

    def known(look: Callable[[Paths], T], default: T) -> T:
        try:
            return look(paths)
        except PlatformError as error:
            problems.setdefault(error.message, error)
            return default

    profile = known(active_profile, None)
    profile_id = profile.id if profile else known(_active_id, "")
    unit = profile.unit if profile else ""
    states = unit_states([TUNNEL_UNIT, *([unit] if unit else [])])
    gateway, tunnel = states.get(unit, UnitState()), states[TUNNEL_UNIT]
    now = Status(
        profile_id=profile_id,
        unit=unit,
        active_state=gateway.active_state,
        uptime_seconds=gateway.uptime_seconds,
        cost_tripped=known(_cost_tripped, default=False),
        doctor_fails=known(_doctor_fails, None),
        agent=Agent(
            profile_id=profile_id,
            display_name=profile.display_name if profile else "",
            unit=unit,
            active_state=gateway.active_state,
            journal_unit=unit,
        ),
        tunnel=Tunnel(TUNNEL_UNIT, tunnel.active_state, tunnel.enabled),
    )
    return Now(now, tuple(problems.values()))


def _active_id(paths: Paths) -> str:
    return record_file.read_line(paths.writable(ACTIVE_PROFILE)) or ""


def _cost_tripped(paths: Paths) -> bool:
    from platformctl.costs import tripped

    return tripped(paths)


def _doctor_fails(paths: Paths) -> int | None:
    from platform_common.records.last_doctor import parse

    try:
        return record_file.read(Found(paths.writable(LAST_DOCTOR)), parse).fails
    except MissingRecordError:
        return None
