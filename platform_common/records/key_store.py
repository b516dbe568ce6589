"""The keys on this device: reads `secrets.env` and stores values in it."""

from __future__ import annotations

from collections.abc import Mapping

from platform_common.paths import SECRETS, Paths
from platform_common.records import record_file
from platform_common.records.secrets_env import SecretsEnv, parse
from platform_common.secret import Secret
from platform_common.storage.atomic_write import KEYS_OWNER


def read_keys(paths: Paths) -> SecretsEnv:
    """Read the keys; empty if there is no file yet; raises `RecordError`."""
    return record_file.read_or(paths.find(SECRETS), parse, parse(b""))


def store_keys(paths: Paths, values: Mapping[str, Secret], *, mode: int) -> SecretsEnv:
    """Set variables, leave everything else in the file, and return the result.

    Raises `PlatformError`, after which the file is unchanged.
    """
    keys = parse(b"")

    def change(before: bytes | None) -> bytes:
        nonlocal keys
        keys = parse(before or b"")
        for name, value in values.items():
            keys = keys.with_value(name, value)
        return keys.render()

    record_file.edit(paths.path_of(SECRETS), change, mode=mode, owner=KEYS_OWNER)
    return keys
