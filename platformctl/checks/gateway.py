"""Checks of the gateway of the active profile."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from platform_common.paths import Paths
from platform_common.records.installed_profiles import active_profile
from platform_common.records.profiles import Profile
from platformctl.checks.finding import NO_SYSTEMD, Finding, failed, passed, skipped, warned
from platformctl.services.systemd import UnitState, unit_states

_NO_PROFILE = "no profile is active yet"
_HEALTH_TIMEOUT_S = 2.0
_GOOD = 200


def active_profile_manifest(paths: Paths) -> Finding:
    """Whether the active profile is installed and its definition can be used."""
    profile = active_profile(paths)
    if profile is None:
        return warned(_NO_PROFILE, "Choose one in the setup wizard")
    return passed(profile.id)


def active_profile_unit(paths: Paths) -> Finding:
    """Whether the gateway of the active profile runs."""
    profile = active_profile(paths)
    if profile is None:
        return skipped(_NO_PROFILE)
    return judge_unit(profile.unit, unit_states([profile.unit])[profile.unit])


def judge_unit(unit: str, state: UnitState) -> Finding:
    """Fail unless the unit is active; warn while it starts, or if it is not enabled at boot."""
    look = _look(unit)
    match state:
        case UnitState(active_state="unavailable"):
            return skipped(NO_SYSTEMD)
        case UnitState(load_state="not-found"):
            return failed(f"{unit} is not installed", "Install the profile, or choose another one")
        case UnitState(active_state="active", enabled=False):
            return warned(f"{unit} will not start at boot", f"Run: systemctl enable {unit}")
        case UnitState(active_state="active"):
            return passed(unit)
        case UnitState(active_state="activating" | "reloading" | "deactivating" as word):
            return warned(f"{unit} is {word}", f"Wait a moment. {look}")
    return failed(f"{unit} is {state.active_state}", f"{look}, then run systemctl restart {unit}")


def _look(unit: str) -> str:
    return f"See why with: journalctl -u {unit} -n 50"


def profile_health_endpoint(paths: Paths) -> Finding:
    """Whether the gateway's health URL answers 200."""
    profile = active_profile(paths)
    if profile is None:
        return skipped(_NO_PROFILE)
    return _asked(profile) if profile.http_check else skipped(f"{profile.id} has no health URL")


def _asked(profile: Profile) -> Finding:
    url = urlsplit(profile.http_check)
    fix = f"{_look(profile.unit)}, then run systemctl restart {profile.unit}"
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=_HEALTH_TIMEOUT_S)
    try:
        connection.request("GET", f"{url.path or '/'}{url.query and '?'}{url.query}")
        # Only the status and the headers; the body is not read.
        status = connection.getresponse().status
    except TimeoutError:
        return failed(f"{profile.http_check} did not answer within {_HEALTH_TIMEOUT_S:g} s", fix)
    except OSError as error:
        return failed(f"{profile.http_check}: {error.strerror or error}", fix)
    except HTTPException:
        return failed(f"{profile.http_check} does not speak HTTP", fix)
    finally:
        connection.close()
    if status != _GOOD:
        return failed(f"{profile.http_check} answers with status {status}, not {_GOOD}", fix)
    return passed()
