"""The installed versions: release, kernel, target and profiles."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from platform_common.control_answers import InstalledProfile, Version
from platform_common.errors import PlatformError
from platform_common.paths import ACTIVE_ENDPOINT, LIMITS, Found, Paths, Place
from platform_common.records import record_file
from platform_common.records.installed_profiles import (
    active_profile,
    installed_profiles,
    profile_file,
    profile_files,
    read_profile,
)
from platform_common.records.limits import Limits
from platform_common.records.limits import parse as parse_limits
from platform_common.records.record_file import RecordError
from platform_common.validation import check_base_url
from platform_common.version import VERSION

INSTALLED_VERSION = Place("/etc/platform/version")
UPDATE_URL = Place("/etc/platform/update-url")
_CHANNELS = ("dev", "beta", "stable")
T = TypeVar("T")


class ListedProfiles(Struct, frozen=True):
    """The installed profiles, and problems with other files or with the active profile."""

    profiles: tuple[InstalledProfile, ...] = ()
    problems: tuple[RecordError, ...] = ()


class ProfileVerdict(Struct, frozen=True):
    """Whether the profile definition in `file` can be used; `error` says why not."""

    file: str
    ok: bool
    error: str = ""


def line_of(place: Place) -> Callable[[Paths], str]:
    """Return a reader for a one-line record; its result is empty if there is no record."""
    return lambda paths: record_file.read_line(paths.path_of(place)) or ""


def active_endpoint(paths: Paths) -> str:
    """The endpoint that was chosen for the active provider, if one was.

    Raises `PlatformError`, which does not show it: it may hold a password.
    """
    address = line_of(ACTIVE_ENDPOINT)(paths)
    try:
        check_base_url(address or "http://none")
    except ValueError as error:
        raise PlatformError(f"{paths.path_of(ACTIVE_ENDPOINT)}: {error}") from None
    return address


def version(paths: Paths) -> tuple[Version, list[RecordError]]:
    """Collect all versions, and the errors of records that could not be read."""
    problems: list[RecordError] = []

    def known(read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except RecordError as error:
            problems.append(error)
            return otherwise

    limits = known(lambda: record_file.read(paths.find(LIMITS), parse_limits), Limits())
    listed = known(lambda: profile_list(paths), ListedProfiles())
    problems += listed.problems
    return Version(
        binary_version=VERSION,
        channel=_channel(known(partial(line_of(UPDATE_URL), paths), "")),
        release_version=known(partial(line_of(INSTALLED_VERSION), paths), ""),
        kernel=os.uname().release,
        target=limits.target,
        profiles=listed.profiles,
    ), problems


def profile_list(paths: Paths) -> ListedProfiles:
    """List the profiles and mark the active one.

    Raises `RecordError` when they cannot be listed.
    """
    found = installed_profiles(paths)
    problems = list(found.problems)
    active = None
    try:
        active = active_profile(paths)
    except RecordError as error:
        if str(error) not in map(str, problems):
            problems.append(error)
    profiles = tuple(
        InstalledProfile(
            id=profile.id,
            display_name=profile.display_name,
            pinned_version=profile.pinned_version,
            active=active is not None and profile.id == active.id,
        )
        for profile in found.profiles
    )
    return ListedProfiles(profiles, tuple(problems))


def check_profiles(paths: Paths, named: Sequence[str]) -> tuple[ProfileVerdict, ...]:
    """Check each of `named` (profile ids or files); if empty, all installed profiles.

    Raises `RecordError` when the installed ones cannot be listed.
    """
    files = [_profile_file(paths, name) for name in named] or profile_files(paths)
    return tuple(_verdict(file) for file in files)


def _profile_file(paths: Paths, name: str) -> Found:
    if "/" in name or name.endswith(".toml"):
        return Found(Path(name))
    return profile_file(paths, name)


def _verdict(file: Found) -> ProfileVerdict:
    try:
        read_profile(file)
    except RecordError as error:
        return ProfileVerdict(str(file.path), ok=False, error=str(error))
    return ProfileVerdict(str(file.path), ok=True)


def _channel(update_url: str) -> str:
    try:
        path = urlsplit(update_url).path
    except ValueError:
        return ""
    # The folder of a channel has its name.
    last = path.rstrip("/").rpartition("/")[2]
    return last if last in _CHANNELS else ""
