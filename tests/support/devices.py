"""A device in a folder, and the control CLI run on it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from platform_common.paths import Paths
from tests.support.releases import clean_environment, program

# Root reads a file of mode 0 all the same, unless this is taken from it.
_WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@dataclass
class Device:
    """The tree under `root`, as `PLATFORM_ROOT` names it."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> Paths:
        """The same device for a call in this process."""
        return Paths.from_env({"PLATFORM_ROOT": str(self.root), **self.environment})

    def path(self, on_device: str) -> Path:
        """Where the device's absolute path lies, in a folder that is there."""
        path = self.root / on_device.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put(self, on_device: str, content: str | bytes, mode: int = 0o644) -> Path:
        """Write a file of the device."""
        path = self.path(on_device)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)
        return path

    def ctl(
        self,
        *args: str | Path,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        privileged: bool = True,
        timeout: float = 30,
    ) -> subprocess.CompletedProcess[str]:
        """Run `platformctl`, without root's right to read everything when not `privileged`."""
        prefix: Sequence[str] = ()
        if not privileged and os.geteuid() == 0:
            prefix = _WITHOUT_PRIVILEGE
        return subprocess.run(
            [*prefix, program("platformctl"), *map(str, args)],
            cwd=self.root,
            env=clean_environment()
            | {"PLATFORM_ROOT": str(self.root)}
            | self.environment
            | dict(env or {}),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
