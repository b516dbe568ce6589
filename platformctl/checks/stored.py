"""Checks of the device's records."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterator, Mapping

from platform_common import paths as places
from platform_common.errors import PlatformError
from platform_common.paths import Paths, Place
from platform_common.records import catalogue, limits, record_file, secrets_env
from platform_common.records.installed_profiles import installed_profiles
from platform_common.records.record_file import MissingRecordError
from platform_common.storage.atomic_write import KEYS_OWNER, ROOT
from platformctl.checks.finding import Finding, failed, passed, skipped
from platformctl.cost import caps as cost_caps
from platformctl.cost import price_sheet
from platformctl.device import INSTALLED_VERSION, UPDATE_URL
from platformctl.voice import settings as voice

RECORDS: Mapping[Place, Callable[[bytes], object]] = {
    places.PROVIDERS: catalogue.parse,
    places.COST_DEFAULTS: price_sheet.parse,
    places.VOICE: voice.parse,
    places.LIMITS: limits.parse,
    places.COST_CAPS: cost_caps.parse,
    places.SECRETS: secrets_env.parse,
    places.ACTIVE_PROFILE: record_file.parse_line,
    places.ACTIVE_PROVIDER: record_file.parse_line,
    places.ACTIVE_MODEL: record_file.parse_line,
    places.ACTIVE_ENDPOINT: record_file.parse_line,
    INSTALLED_VERSION: record_file.parse_line,
    UPDATE_URL: record_file.parse_line,
}
_MODES = (0o600, 0o640)


def records_readable(paths: Paths) -> Finding:
    """Whether every record can be read, or is absent and has a default."""
    problems = [problem for place in RECORDS for problem in _problems(paths, place)]
    problems += [problem.message for problem in installed_profiles(paths).problems]
    if not problems:
        return passed()
    return failed(
        "; ".join(problems),
        "Correct each file at the place named, or rename it if it has a shipped default",
    )


def _problems(paths: Paths, place: Place) -> Iterator[str]:
    found = paths.find(place)
    if place is places.SECRETS and os.geteuid() != 0 and not os.access(found.path, os.R_OK):
        return  # Only root and the gateways may read it, so that says nothing.
    try:
        record = record_file.read(found, RECORDS[place])
    except MissingRecordError as error:
        # A record without a default may be absent, unless a variable names it.
        if paths.named(place.variable):
            yield error.message
    except PlatformError as error:
        yield error.message
    else:
        if isinstance(record, catalogue.Catalogue):
            yield from (f"{found.path}: {problem}" for problem in record.problems)


def secrets_mode(paths: Paths) -> Finding:
    """Whether only root and the gateways can read the keys."""
    path = paths.find(places.SECRETS).path
    try:
        status = path.lstat()
    except FileNotFoundError:
        return skipped("no key is stored yet")
    fix = f"Run chown root:agent {path} && chmod 0640 {path}"
    if not stat.S_ISREG(status.st_mode):
        return failed(f"{path} is not a regular file", f"Rename it: mv {path} {path}.old")
    mode = stat.S_IMODE(status.st_mode)
    if mode not in _MODES:
        return failed(f"{path} has the mode {mode:04o}, not 0640", fix)
    if paths.is_machine and (owner := _owner(status)) not in (KEYS_OWNER, ROOT):
        return failed(f"{path} belongs to {':'.join(owner)}, not to {':'.join(KEYS_OWNER)}", fix)
    return passed()


def _owner(status: os.stat_result) -> tuple[str, str]:
    """The owner and group of a file, as names or, if there are none, numbers."""
    user, group = str(status.st_uid), str(status.st_gid)
    try:
        user = pwd.getpwuid(status.st_uid).pw_name
        group = grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        pass
    return user, group
