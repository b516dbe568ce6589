"""Paths on the device: one root, and variables that override single files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from platform_common.errors import PlatformError
from platform_common.resources import data_path

AGENT_HOME = "/home/agent"
HOSTNAME = "/etc/hostname"
TIME_ZONE = "/etc/timezone"


class Place(Struct, frozen=True):
    """The places of a configuration file: its variable, the device, the package.

    `device` is an absolute path on the device; an empty `variable` or `shipped` means that there
    is none.
    """

    device: str
    variable: str = ""
    shipped: str = ""


class Found(Struct, frozen=True):
    """A file to read; `shipped` if it is the default in the package."""

    path: Path
    shipped: bool = False


PROVIDERS = Place("/etc/platform/providers.json", "PLATFORM_PROVIDERS_FILE", "providers.json")
COST_DEFAULTS = Place(
    "/etc/platform/cost-defaults.json", "PLATFORM_COST_DEFAULTS", "cost-defaults.json"
)
VOICE = Place("/etc/platform/voice.toml", "PLATFORM_VOICE_CONFIG", "voice.toml")
LIMITS = Place("/etc/platform/limits.json", "PLATFORM_LIMITS_FILE", "limits/qemu-x86_64.json")
PROFILES = Place("/etc/platform/profiles", "PLATFORM_PROFILES_DIR", "profiles")
COST_CAPS = Place("/etc/platform/cost.toml", "PLATFORM_COST_CONFIG")
SECRETS = Place("/etc/platform/secrets.env", "PLATFORM_SECRETS_FILE")
AIRGAP = Place("/etc/platform/airgap.flag")
ACTIVE_PROFILE = Place("/etc/platform/active-profile")
ACTIVE_PROVIDER = Place("/etc/platform/active-provider")
ACTIVE_MODEL = Place("/etc/platform/active-model")
ACTIVE_ENDPOINT = Place("/etc/platform/active-endpoint")
SETUP_COMPLETE = Place("/etc/platform/setup-complete")
CONTROL_SOCKET = Place("/run/platform/control.sock")
WIZARD_STATE = Place("/var/lib/platform/wizard-state.json", "WIZARD_STATE_FILE")
ROOT_VARIABLE = "PLATFORM_ROOT"
COST_LEDGER_VARIABLE = "PLATFORM_COST_LEDGER"
_SHARED_VARIABLES = (
    *(ROOT_VARIABLE, COST_LEDGER_VARIABLE),
    *(PROVIDERS.variable, COST_DEFAULTS.variable, VOICE.variable, LIMITS.variable),
    *(PROFILES.variable, COST_CAPS.variable, SECRETS.variable),
)


class Paths:
    """Paths of one device: `root` is `/`, or a folder that stands for the device."""

    def __init__(self, root: Path, variables: Mapping[str, str]) -> None:
        self.root = root
        self._variables = variables

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Paths:
        """The device at `PLATFORM_ROOT`, `/` by default."""
        return cls(Path(env.get(ROOT_VARIABLE) or "/"), env)

    @property
    def is_machine(self) -> bool:
        """Whether the device is this machine and not a folder."""
        return self.root == Path("/")

    def on_device(self, path: str) -> Path:
        """The real path of the device's absolute `path`; `~/` is the home of agent."""
        whole = AGENT_HOME + path[1:] if path.startswith("~/") else path
        if not whole.startswith("/") or ".." in whole.split("/"):
            raise PlatformError(f"{path!a} is not a path on the device")
        return self.root / whole.lstrip("/")

    def named(self, variable: str) -> Path | None:
        """The path that `variable` gives, or None."""
        value = self._variables.get(variable)
        return Path(value) if value else None

    def variables(self) -> dict[str, str]:
        """The variables that make another program use the same device, in any working directory."""
        return {
            name: str(path.absolute())
            for name in _SHARED_VARIABLES
            if (path := self.named(name)) is not None
        }

    def path_of(self, place: Place) -> Path:
        """Where to write `place`: the path in its variable, or its path on the device."""
        return self.named(place.variable) or self.on_device(place.device)

    def find(self, place: Place) -> Found:
        """Where to read `place`: its variable, the device, the shipped default.

        Anything at the device path counts, readable or not: a default never hides a broken file.
        """
        path = self.path_of(place)
        if not place.shipped or self.named(place.variable) or _anything_at(path):
            return Found(path)
        return Found(data_path(place.shipped), shipped=True)

    def has(self, place: Place) -> bool:
        """Whether `place` exists, such as the mark of an offline build."""
        return _anything_at(self.path_of(place))


def _anything_at(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True
