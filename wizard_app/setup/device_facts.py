"""Facts about the device for the steps: its records, read on demand."""

from __future__ import annotations

import glob
import zoneinfo
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import TypeVar

from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.paths import AIRGAP, LIMITS, PROFILES, PROVIDERS, TIME_ZONE, Paths, Place
from platform_common.records import catalogue, limits, record_file
from platform_common.records.catalogue import Catalogue, Provider
from platform_common.records.device_identity import device_name
from platform_common.records.installed_profiles import InstalledProfiles, installed_profiles
from platform_common.records.limits import Limits
from platform_common.records.profiles import Profile
from platform_common.records.record_file import RecordError
from wizard_app.setup import code_host, ssh_keys
from wizard_app.setup.apply.journal import Attempt, read_attempt
from wizard_app.setup.code_host import Fetched
from wizard_app.setup.plan.open_ports import open_ports
from wizard_app.setup.settings import JOURNAL, WizardSettings
from wizard_app.setup.ssh_keys import Key

T = TypeVar("T")
# Created by systemd-timesyncd.
_SYNCHRONISED = Place("/run/systemd/timesync/synchronized")
# Database names without a fixed zone; with `localtime` as an answer, /etc/localtime would be
# a link to itself.
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory"})


class DeviceFacts:
    """The device during one request; each record is read once.

    A record that cannot be used counts as empty and adds to `problems`.
    """

    def __init__(self, settings: WizardSettings) -> None:
        self._settings = settings
        self.problems: list[str] = []

    @cached_property
    def profiles(self) -> tuple[Profile, ...]:
        """The installed profiles."""
        try:
            found = installed_profiles(self._settings.reading(PROFILES))
        except RecordError as error:
            found = InstalledProfiles((), (error,))
        self.problems += [problem.message for problem in found.problems]
        return found.profiles

    @property
    def profiles_folder(self) -> str:
        """The folder of the profiles."""
        return str(self._settings.device.path_of(PROFILES))

    def profile(self, profile_id: str) -> Profile | None:
        """The installed profile with that id."""
        return next((one for one in self.profiles if one.id == profile_id), None)

    @cached_property
    def providers(self) -> tuple[Provider, ...]:
        """The providers that this build offers."""
        found = self._read(PROVIDERS, catalogue.parse, Catalogue(()))
        self.problems += found.problems
        return found.offered(offline=self.offline)

    def provider(self, provider_id: str) -> Provider | None:
        """The provider with that id, if it is offered."""
        return next((one for one in self.providers if one.id == provider_id), None)

    @cached_property
    def limits(self) -> Limits:
        """The device's limits record."""
        return self._read(LIMITS, limits.parse, Limits())

    @property
    def offline(self) -> bool:
        """Whether this is an offline build."""
        return self._settings.paths.has(AIRGAP) or self._settings.device.has(AIRGAP)

    @property
    def name(self) -> str:
        """The current name of the device."""
        return device_name(self._settings.paths, self._settings.device)

    @property
    def time_zone(self) -> str:
        """The time zone of its clock; empty if it is not in the database."""
        zone = _time_zone(self._settings.paths) or _time_zone(self._settings.device)
        return zone if zone in zones() else ""

    @property
    def clock_is_set(self) -> bool:
        """Whether a time server has set its clock since boot."""
        return self._settings.device.has(_SYNCHRONISED)

    def has(self, path: str) -> bool:
        """Whether a path exists on the device."""
        return self._settings.paths.has(Place(path))

    def is_enabled(self, unit: str) -> bool:
        """Whether a unit is enabled at boot, as far as that can be determined.

        If not, it counts as enabled: disabling or restarting a unit too often does no harm.
        """
        folder = self._settings.paths.on_device("/etc/systemd/system")
        try:
            return any(folder.glob(f"*.wants/{glob.escape(unit)}"))
        except OSError:
            return True

    @cached_property
    def open_ports(self) -> frozenset[str]:
        """The ports that must stay open, beside the usual ones: SSH's and this page's."""
        found = open_ports(self._settings)
        self.problems += found.problems
        return frozenset(f"{port}/tcp" for port in found.ports)

    @cached_property
    def last_attempt(self) -> Attempt | None:
        """How far the last attempt to set it up came; None if there was none."""
        return read_attempt(self._settings.paths.path_of(JOURNAL))

    @property
    def code_host(self) -> str:
        """The name of the code host from which SSH keys are fetched."""
        return code_host.name_of(self._settings.code_host)

    def keys_of(self, user: str) -> Fetched | Sentence:
        """Fetch a user's keys from the code host, or return why there are none."""
        return code_host.fetch_keys(self._settings.code_host, user)

    def examine(self, keys: Iterable[str]) -> list[Key]:
        """Run the device's `ssh-keygen` on valid lines."""
        return list(ssh_keys.examine(keys))

    def _read(self, place: Place, parse: Callable[[bytes], T], default: T) -> T:
        try:
            return record_file.read(self._settings.reading(place).find(place), parse)
        except PlatformError as error:
            self.problems.append(error.message)
            return default


def _time_zone(device: Paths) -> str:
    """The time zone that the device is set to; empty if it does not say."""
    try:
        return str(device.on_device("/etc/localtime").readlink()).partition("zoneinfo/")[2]
    except OSError:
        pass
    try:
        return record_file.read_line(device.on_device(TIME_ZONE)) or ""
    except PlatformError:
        return ""


# Reading them takes 10 ms; the bench row "a step's answer stored" would miss.
@cache
def zones() -> frozenset[str]:
    """The zone names in the time zone database."""
    return frozenset(zoneinfo.available_timezones()) - _NO_ZONES
