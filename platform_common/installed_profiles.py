"""Which profiles this device has, and which of them is active."""

from __future__ import annotations

from msgspec import Struct

from platform_common.errors import UnreadableError
from platform_common.paths import ACTIVE_PROFILE, PROFILES, Found, Paths
from platform_common.records import record_file
from platform_common.records.profiles import Profile, parse
from platform_common.records.record_file import MissingRecordError, RecordError

_ENDING = ".toml"


class InstalledProfiles(Struct, frozen=True):
    """The usable profiles by id, and what is wrong with each other file."""

    profiles: tuple[Profile, ...]
    problems: tuple[RecordError, ...]


def installed_profiles(paths: Paths) -> InstalledProfiles:
    """Every profile of the device; raises `RecordError` when their folder cannot be listed."""
    folder = paths.find(PROFILES).path
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise RecordError(UnreadableError.of(folder, error).message) from error
    profiles, problems = [], []
    for name in names:
        if name.endswith(_ENDING) and not name.startswith("."):
            try:
                profiles.append(profile(paths, name.removesuffix(_ENDING)))
            except RecordError as error:
                problems.append(error)
    return InstalledProfiles(tuple(profiles), tuple(problems))


def profile(paths: Paths, profile_id: str) -> Profile:
    """The profile of that id; raises `MissingRecordError` when there is none, or `RecordError`."""
    folder = paths.find(PROFILES)
    if "/" in profile_id or "\0" in profile_id:
        raise MissingRecordError(f"There is no profile {profile_id!a}")
    file = Found(folder.path / f"{profile_id}{_ENDING}", folder.shipped)
    return record_file.read(file, lambda data: parse(data, profile_id))


def active_profile(paths: Paths) -> Profile | None:
    """The active profile; None when none is set; raises `RecordError` when it cannot be used."""
    path = paths.writable(ACTIVE_PROFILE)
    profile_id = record_file.read_line(path)
    if profile_id is None:
        return None
    try:
        return profile(paths, profile_id)
    except MissingRecordError as error:
        raise RecordError(
            f"{path}: the profile {profile_id!a} is not installed",
            hint="See which ones are with `platformctl profile list`.",
        ) from error
