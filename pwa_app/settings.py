"""The settings of the dashboard, read from the environment."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from platform_common.host_names import ALLOWED_HOSTS_VARIABLE, allowed_hosts
from platform_common.paths import Paths, Place
from pwa_app.control_client import CALL_LIMIT_S

PWA_DATA = Place("/var/lib/platform", "PWA_DATA_DIR")
_CONTROL_CLI = "platformctl"


class PwaSettings(Struct, frozen=True, kw_only=True):
    """The settings of one dashboard; without `control_cli` it shows only sample values."""

    paths: Paths
    control_cli: str | None
    dev_stub: bool = False
    journal_dir: Path | None = None
    allowed_hosts: frozenset[str] = frozenset()
    call_limit_s: float = CALL_LIMIT_S

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> PwaSettings:
        """The settings in `env` (docs/reference/pwa-app.md, "Settings")."""
        control_cli = shutil.which(env.get("PLATFORM_CTL") or _CONTROL_CLI, path=env.get("PATH"))
        journal_dir = env.get("PLATFORM_JOURNAL_DIR")
        return cls(
            paths=Paths.from_env(env),
            control_cli=str(Path(control_cli).absolute()) if control_cli else None,
            dev_stub=env.get("PWA_DEV_STUB") == "1" or control_cli is None,
            journal_dir=Path(journal_dir).absolute() if journal_dir else None,
            allowed_hosts=allowed_hosts(env.get(ALLOWED_HOSTS_VARIABLE, "")),
        )

    @property
    def data_dir(self) -> Path:
        """The folder of the push key and of the subscriptions."""
        return self.paths.path_of(PWA_DATA)
