"""The file names of artefacts and the ids in them (docs/reference/manifest.md)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from platform_common.errors import AccessError, PlatformError, WrongUsageError, access_error
from platform_common.storage.safe_read import read_bounded
from release_tools.manifest.calver import CalVer
from release_tools.manifest.vocabulary import CHANNELS, FORMATS

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DATA_FILE_LIMIT_BYTES = 1 << 20


class NamingError(PlatformError):
    """A file name that denotes no artefact, or is ambiguous."""


@dataclass(frozen=True, slots=True)
class ArtefactName:
    """What `platform-<profile>-<target>-<version>-<channel>.<ext>` says of an artefact."""

    profile: str
    target: str
    format: str


def parse_name(
    filename: str,
    *,
    version: CalVer,
    channel: str,
    profiles: Collection[str],
    targets: Mapping[str, str],
) -> ArtefactName:
    """Parse `filename` from the right; raises `NamingError`.

    `profiles` are the known profile ids and `targets` maps target ids to formats: they decide
    where the profile ends and the target begins.
    """
    form = next((form for form in FORMATS if filename.endswith(f".{form}")), None)
    if form is None or not filename.startswith("platform-"):
        raise NamingError(
            f"{filename!a} is not named platform-<profile>-<target>-<version>-<channel>.<ext>",
            hint=f"The extensions are {', '.join(FORMATS)}.",
        )
    stem = filename.removesuffix(f".{form}").removeprefix("platform-")
    rest, _, seen_channel = stem.rpartition("-")
    if seen_channel not in CHANNELS:
        raise NamingError(f"{filename!a} does not end in a channel ({', '.join(CHANNELS)})")
    if seen_channel != channel:
        raise NamingError(
            f"{filename!a} is for the channel {seen_channel}, but this release is for {channel}"
        )
    if not rest.endswith(f"-{version.text}"):
        raise NamingError(f"{filename!a} is not for the version {version}")
    middle = rest.removesuffix(f"-{version.text}")
    profile, target = _split(filename, middle, profiles, targets)
    if targets[target] != form:
        raise NamingError(
            f"{filename!a} has the format {form}, but the target {target} needs {targets[target]}"
        )
    return ArtefactName(profile, target, form)


def _split(
    filename: str, middle: str, profiles: Collection[str], targets: Collection[str]
) -> tuple[str, str]:
    pairs = [
        (profile, target)
        for profile in sorted(profiles)
        for target in sorted(targets)
        if f"{profile}-{target}" == middle
    ]
    if not pairs:
        raise NamingError(
            f"{filename!a} has no known profile and target in {middle!a}",
            hint=f"Profiles: {', '.join(sorted(profiles))}. Targets: {', '.join(sorted(targets))}.",
        )
    if len(pairs) > 1:
        ways = " or ".join(f"profile {profile} on target {target}" for profile, target in pairs)
        raise NamingError(f"{filename!a} can be read in two ways: {ways}")
    return pairs[0]


def profile_ids(directory: Path) -> list[str]:
    """Return the ids of the profile definitions `<id>.toml` in `directory`."""
    if not directory.is_dir():
        raise AccessError(f"{directory} is not a folder of profile definitions")
    with access_error(directory):
        ids = sorted(path.stem for path in directory.iterdir() if path.suffix == ".toml")
    if not ids:
        raise WrongUsageError(f"{directory} holds no profile definition (<id>.toml)")
    _refuse_bad_ids(directory, ids)
    return ids


def target_matrix(path: Path) -> dict[str, str]:
    """Read the target matrix, target id to format, from the table `[targets]` of a TOML file."""
    try:
        document = tomllib.loads(read_bounded(path, _DATA_FILE_LIMIT_BYTES).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongUsageError(f"{path} is not valid TOML: {error}") from error
    except RecursionError:
        raise WrongUsageError(f"{path} is nested too deeply") from None
    targets = document.get("targets")
    if not isinstance(targets, dict) or not targets:
        raise WrongUsageError(f"{path} has no table [targets]")
    for target, form in targets.items():
        if form not in FORMATS:
            raise WrongUsageError(
                f"{path}: [targets].{target} must be one of {', '.join(FORMATS)}, not {form!a}"
            )
    _refuse_bad_ids(path, targets)
    return targets


def _refuse_bad_ids(path: Path, ids: Collection[str]) -> None:
    for name in ids:
        if not _ID.fullmatch(name):
            raise WrongUsageError(f"{path}: {name!a} cannot be part of a file name")
