"""Small signed releases for tests."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.running import run

VERSION = "2026.11.1"
REFERENCE = f"oci://registry.example/appliance@sha256:{'a' * 64}\n".encode()


def artefact_files(version: str = VERSION, channel: str = "stable") -> dict[str, bytes]:
    """File name to content, for three small artefacts, one of them a reference."""
    return {
        f"platform-openclaw-rpi5-{version}-{channel}.img.xz": pseudo_random(300_000, "rpi5"),
        f"platform-khoj-qemu-x86_64-{version}-{channel}.qcow2": pseudo_random(70_000, "qemu"),
        f"platform-hermes-fly-machines-{version}-{channel}.oci": REFERENCE,
    }


def pseudo_random(size: int, seed: str) -> bytes:
    """`size` bytes that are the same in every run."""
    return hashlib.shake_256(seed.encode()).digest(size)


@dataclass(frozen=True)
class KeyPair:
    """The paths of a key pair without a password."""

    secret: Path
    public: Path


@dataclass
class Tools:
    """Runs the installed `release-tools` in `folder`, as its users do."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(
        self, *args: str | Path, env: Mapping[str, str] | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        environment = clean_environment() | self.environment | dict(env or {})
        return run(program(), *args, cwd=self.folder, env=environment, timeout_s=timeout)


def program(name: str = "release-tools") -> str:
    """The path of an installed program of this environment."""
    return str(Path(sys.executable).with_name(name))


def clean_environment() -> dict[str, str]:
    """The environment without variables that change the behaviour of the programs."""
    dropped = (
        *("SIGNING_", "PLATFORM_", "SOURCE_DATE_EPOCH", "NO_COLOR"),
        *("PWA_", "WIZARD_", "FLASK_", "GUNICORN_", "WEB_CONCURRENCY", "FORWARDED_ALLOW_IPS"),
        "JOURNAL_STREAM",
    )
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}


def write_artefacts(folder: Path, files: Mapping[str, bytes] | None = None) -> Path:
    """Write `files` (by default three small artefacts) into `folder`, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (artefact_files() if files is None else files).items():
        (folder / name).write_bytes(data)
    return folder
