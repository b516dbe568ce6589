"""A device in a folder, and the control CLI run on it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from click.testing import CliRunner

from platform_common.paths import Paths
from platformctl.cli import main
from tests.support.releases import clean_environment, program
from tests.support.running import run

# Otherwise root could read a file of mode 0.
_WITHOUT_PRIVILEGE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")

KEYS = {
    "OPENAI_API_KEY": "sk-canary-0123456789abcdef",
    "HUGGINGFACE_API_KEY": "hf_canary0123456789",
}


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
        """The local path of an absolute path on the device; its folder is created."""
        path = self.root / on_device.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put(self, on_device: str, content: str | bytes, mode: int = 0o644) -> Path:
        """Write a file of the device."""
        file = self.path(on_device)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        file.chmod(mode)
        return file

    def ctl(
        self,
        *args: str | Path,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        privileged: bool = True,
        clock: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run `platformctl` as its users do.

        Without `privileged` even root cannot read files against their mode. `clock` is the time
        that the program sees.
        """
        prefix: tuple[str, ...] = () if privileged or os.geteuid() != 0 else _WITHOUT_PRIVILEGE
        prefix += ("faketime", clock) if clock else ()
        environment = clean_environment() | {"PLATFORM_ROOT": str(self.root)} | self.environment
        environment |= dict(env or {})
        return run(*prefix, program("platformctl"), *args, env=environment, stdin=stdin)

    def call(
        self, *args: str | Path, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `platformctl` in this process, which is faster."""
        environment = {"PLATFORM_ROOT": str(self.root)} | self.environment | dict(env or {})
        done = CliRunner().invoke(main, [*map(str, args)], env=environment)
        return subprocess.CompletedProcess(args, done.exit_code, done.stdout, done.stderr)


def set_up(device: Device) -> None:
    """Make it a configured device, with some messages in its ledger."""
    for name, line in {
        "active-profile": "openclaw",
        "active-provider": "openai",
        "active-model": "gpt-4o",
        "version": "2026.11.1",
        "update-url": "https://releases.example/stable/",
    }.items():
        device.put(f"/etc/platform/{name}", f"{line}\n")
    device.put(
        "/etc/platform/secrets.env",
        "".join(f"{name}={key}\n" for name, key in KEYS.items()),
        mode=0o640,
    )
    device.put("/etc/platform/cost.toml", "[caps]\ndaily_usd = 2.0\nmonthly_usd = 40.0\n")
    device.put("/home/agent/.openclaw/cost-ledger.jsonl", _ledger(datetime.now(UTC)))
    device.put("/run/platform/doctor.json", '{"checked_at": "2026-11-20T10:00:00Z", "fails": 2}\n')


def _ledger(now: datetime) -> str:
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    messages: list[dict[str, object]] = [
        {"provider": "openai", "model": "gpt-4o", "cost_usd": 1.75},
        {"provider": "openai", "model": "gpt-4o"},
        {"provider": "nobody", "model": "unpriced"},
    ]
    return "".join(
        json.dumps(
            {"timestamp": stamp, **message, "input_tokens": 1000, "output_tokens": 500}
            | {"request_id": f"request-{number}"}
        )
        + "\n"
        for number, message in enumerate(messages)
    )
