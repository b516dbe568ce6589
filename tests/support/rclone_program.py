"""Debian's `rclone`, and the configuration that setup writes for it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support import running

_NONE: Mapping[str, str] = {}


def settings(kind: str, meta: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """The single section of an rclone.conf for a store."""
    if kind == "store_a":
        return {"type": "b2", "account": meta["account_id"], "key": secrets["a_application_key"]}
    prefix = kind.removeprefix("store_")
    return {
        "type": "s3",
        "provider": {"store_b": "Cloudflare", "store_c": "Other"}[kind],
        "access_key_id": secrets[f"{prefix}_access_key"],
        "secret_access_key": secrets[f"{prefix}_secret_key"],
        "endpoint": meta["endpoint"],
        "acl": "private",
    }


def written(sections: Mapping[str, Mapping[str, str]]) -> str:
    """The text of an rclone.conf with these sections; on a device there is only `backup`."""
    lines = []
    for section, values in sections.items():
        lines += [f"[{section}]", *(f"{name} = {value}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def dump(config: Path) -> dict[str, dict[str, str]]:
    """The sections of a configuration as rclone reads them, by name."""
    sections: dict[str, dict[str, str]] = json.loads(run(config, "config", "dump"))
    return sections


def run(config: Path, *words: str | Path, variables: Mapping[str, str] = _NONE) -> str:
    """Run rclone with a configuration; it must succeed; return its output."""
    done = call(config, *words, variables=variables)
    if done.returncode:
        raise RuntimeError(f"rclone {words} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def call(
    config: Path, *words: str | Path, variables: Mapping[str, str] = _NONE
) -> subprocess.CompletedProcess[str]:
    """Run rclone with a configuration, and `variables` in its environment."""
    # It reads settings from the environment, too.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RCLONE_", "AWS_"))
    }
    command = ("rclone", "--config", config, "--retries=1", "--low-level-retries=1", *words)
    return running.run(*command, env=environment | dict(variables))
