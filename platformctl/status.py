"""What the device is doing right now."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from platform_common.control_answers import ActiveProvider, Agent, Status, Tunnel
from platform_common.errors import PlatformError
from platform_common.paths import (
    ACTIVE_MODEL,
    ACTIVE_PROFILE,
    ACTIVE_PROVIDER,
    PROVIDERS,
    WIZARD_STATE,
    Found,
    Paths,
)
from platform_common.records import catalogue, record_file
from platform_common.records.installed_profiles import active_profile
from platformctl.checks.last_doctor import LAST_DOCTOR
from platformctl.checks.last_doctor import parse as parse_last_doctor
from platformctl.cost.service import SUMMARY
from platformctl.device import active_endpoint, line_of
from platformctl.root_helper.remote_operation import NOTHING
from platformctl.services.systemd import UnitState, unit_states
from platformctl.setup.wizard_record import parse_channels

TUNNEL_UNIT = "platform-tunnel.service"
T = TypeVar("T")


class Now(NamedTuple):
    """The state, and each problem that left a part of it unknown."""

    status: Status
    problems: tuple[PlatformError, ...]


def status(paths: Paths) -> Now:
    """The state of the device; unknown parts have their default and cause a problem."""
    problems: dict[str, PlatformError] = {}

    def known(look: Callable[[Paths], T], default: T) -> T:
        try:
            return look(paths)
        except PlatformError as error:
            problems.setdefault(error.message, error)
            return default

    profile = known(active_profile, None)
    profile_id = profile.id if profile else known(line_of(ACTIVE_PROFILE), "")
    provider_id = known(line_of(ACTIVE_PROVIDER), "")
    unit = profile.unit if profile else ""
    states = unit_states([TUNNEL_UNIT, *([unit] if unit else [])])
    gateway, tunnel = states.get(unit, UnitState()), states[TUNNEL_UNIT]
    now = Status(
        profile_id=profile_id,
        unit=unit,
        active_state=gateway.active_state,
        uptime_seconds=gateway.uptime_seconds,
        cost_tripped=known(lambda paths: SUMMARY(paths, NOTHING).cost.tripped, default=False),
        doctor_fails=known(_doctor_fails, None),
        agent=Agent(
            profile_id=profile_id,
            display_name=profile.display_name if profile else "",
            unit=unit,
            active_state=gateway.active_state,
            journal_unit=unit,
        ),
        tunnel=Tunnel(TUNNEL_UNIT, tunnel.active_state, tunnel.enabled),
        provider=ActiveProvider(
            id=provider_id,
            display_name=_provider_name(paths, provider_id),
            model=known(line_of(ACTIVE_MODEL), ""),
            endpoint=known(active_endpoint, ""),
        ),
        channels=_channels(paths),
    )
    return Now(now, tuple(problems.values()))


def _provider_name(paths: Paths, provider_id: str) -> str:
    """The name in the catalogue, otherwise the id; other commands report the bad catalogue."""
    if not provider_id:
        return ""
    try:
        found = record_file.read(paths.find(PROVIDERS), catalogue.parse).providers
    except PlatformError:
        found = ()
    return next((one.display_name for one in found if one.id == provider_id), provider_id)


def _channels(paths: Paths) -> tuple[str, ...]:
    """The chosen channels; empty if there are no answers or this user cannot read them."""
    try:
        return record_file.read(Found(paths.path_of(WIZARD_STATE)), parse_channels)
    except PlatformError:
        return ()


def _doctor_fails(paths: Paths) -> int | None:
    last = record_file.read_or(Found(paths.path_of(LAST_DOCTOR)), parse_last_doctor, None)
    return last.fails if last else None
