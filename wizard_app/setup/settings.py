"""The wizard's settings, read from the environment in one place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from platform_common.errors import WrongUsageError
from platform_common.host_names import ALLOWED_HOSTS_VARIABLE, allowed_hosts
from platform_common.paths import WIZARD_STATE, Paths, Place

DEV_OUT = "dev-out"
# In dev mode, commands are recorded in this file of the dev-out folder.
COMMANDS = "commands.jsonl"
TOKEN = Place("/run/platform/wizard.token", "WIZARD_TOKEN_FILE")
JOURNAL = Place("/var/lib/platform/apply-journal.jsonl")
TLS = Place("/var/lib/platform/wizard-tls")
# Hexadecimal digits; in production too many to guess.
_TOKEN, _SECURE_TOKEN = re.compile(r"[0-9A-Fa-f]{1,128}"), re.compile(r"[0-9a-f]{32,128}")
_CODE_HOST = "https://github.com"


class WizardSettings(Struct, frozen=True, kw_only=True):
    """The settings of one wizard.

    `paths` is where it writes and looks first, `device` where it looks next; in production they
    are the same. `token` is the first launch token; if empty, one is made. `code_host` is the
    site from which SSH keys are fetched; `bind` has the addresses that it listens on, separated
    by blanks.
    """

    paths: Paths
    device: Paths
    production: bool = False
    token: str = ""
    require_token: bool = True
    behind_proxy: bool = False
    allowed_hosts: frozenset[str] = frozenset()
    code_host: str = _CODE_HOST
    bind: str = ""

    def __post_init__(self) -> None:
        """Refuse settings that would let anyone set up a real device."""
        shape = _SECURE_TOKEN if self.production else _TOKEN
        if self.token and not shape.fullmatch(self.token):
            raise WrongUsageError(
                "The launch token is not valid",
                hint="A token is 32 random bytes as 64 digits of 0 to 9 and a to f;"
                " leave out --token for a random one.",
            )
        if self.production and not self.require_token:
            raise WrongUsageError(
                "In production the wizard always requires its launch token",
                hint="Leave out --no-token, or --production.",
            )

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> WizardSettings:
        """The settings in `env` (docs/reference/wizard-app.md, "Settings")."""
        production = env.get("WIZARD_PRODUCTION") == "1"
        device = Paths.from_env(env)
        out = Path(env.get("WIZARD_DEV_OUT") or DEV_OUT).absolute()
        return cls(
            paths=device if production else Paths(out, env),
            device=device,
            production=production,
            token=env.get("WIZARD_TOKEN", ""),
            require_token=env.get("WIZARD_NO_TOKEN") != "1",
            behind_proxy=env.get("WIZARD_BEHIND_PROXY") == "1",
            allowed_hosts=allowed_hosts(env.get(ALLOWED_HOSTS_VARIABLE, "")),
            code_host=env.get("WIZARD_CODE_HOST") or _CODE_HOST,
        )

    def reading(self, place: Place) -> Paths:
        """The paths from which `place` is read: those the wizard writes to, if it exists there."""
        return self.paths if self.paths.has(place) else self.device

    @property
    def state_file(self) -> Path:
        """The file of the answers."""
        return self.paths.path_of(WIZARD_STATE)

    @property
    def token_file(self) -> Path:
        """The file of the launch token."""
        return self.paths.path_of(TOKEN)

    @property
    def tls_folder(self) -> Path:
        """The folder of the wizard's own certificate."""
        return self.paths.path_of(TLS)
