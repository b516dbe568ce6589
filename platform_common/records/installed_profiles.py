"""The installed profiles, and the active one."""

from __future__ import annotations

from msgspec import Struct

from platform_common.errors import AccessError
from platform_common.paths import ACTIVE_PROFILE, PROFILES, Found, Paths
from platform_common.records import record_file
from platform_common.records.profiles import Profile, parse
from platform_common.records.record_file import MissingRecordError, RecordError
from platform_common.validation import check_id

_ENDING = ".toml"
_LIST = "List the profiles with: platformctl profile list"


class InstalledProfiles(Struct, frozen=True):
    """The usable profiles by id, and the problems of the other files."""

    profiles: tuple[Profile, ...]
    problems: tuple[RecordError, ...]


def installed_profiles(paths: Paths) -> InstalledProfiles:
    """Read all profiles; raises `RecordError` if their folder cannot be listed."""
    profiles, problems = [], []
    for file in profile_files(paths):
        try:
            profiles.append(read_profile(file))
        except RecordError as error:
            problems.append(error)
    return InstalledProfiles(tuple(profiles), tuple(problems))


def profile_files(paths: Paths) -> list[Found]:
    """The profile definition files; raises `RecordError` if their folder cannot be listed."""
    folder = paths.find(PROFILES)
    try:
        names = sorted(entry.name for entry in folder.path.iterdir())
    except OSError as error:
        raise RecordError(AccessError.of(folder.path, error).message) from error
    return [
        Found(folder.path / name, folder.shipped)
        for name in names
        if name.endswith(_ENDING) and not name.startswith(".")
    ]


def profile_file(paths: Paths, profile_id: str) -> Found:
    """The definition file of the profile with that id; raises `RecordError` for an invalid id."""
    try:
        check_id(profile_id)
    except ValueError as error:
        raise RecordError(f"The profile id {profile_id[:80]!a} {error}") from None
    folder = paths.find(PROFILES)
    return Found(folder.path / f"{profile_id}{_ENDING}", folder.shipped)


def read_profile(file: Found) -> Profile:
    """Read the profile in `file`, which is named after its id; raises `RecordError`."""
    return record_file.read(file, lambda data: parse(data, file.path.name.removesuffix(_ENDING)))


def profile(paths: Paths, profile_id: str) -> Profile:
    """Read the profile with that id; raises `RecordError`, or `MissingRecordError` if none."""
    file = profile_file(paths, profile_id)
    try:
        return read_profile(file)
    except MissingRecordError as error:
        raise MissingRecordError(error.message, hint=_LIST) from error


def active_profile(paths: Paths) -> Profile | None:
    """Read the active profile; None if none is set; raises `RecordError` if it is unusable."""
    path = paths.path_of(ACTIVE_PROFILE)
    profile_id = record_file.read_line(path)
    if profile_id is None:
        return None
    try:
        check_id(profile_id)
        return profile(paths, profile_id)
    except ValueError as error:
        raise RecordError(f"{path}: {error}") from None
    except MissingRecordError as error:
        raise RecordError(
            f"{path}: the profile {profile_id} is not installed", hint=_LIST
        ) from error
