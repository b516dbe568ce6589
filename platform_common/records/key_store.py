"""The keys on this device: reading `secrets.env`, and storing a value in it."""

from __future__ import annotations

from collections.abc import Mapping

from platform_common.paths import SECRETS, Paths
from platform_common.records import record_file
from platform_common.records.secrets_env import SecretsEnv, parse
from platform_common.secret import Secret
from platform_common.storage.atomic_write import KEYS_OWNER


def read_keys(paths: Paths) -> SecretsEnv:
    """The keys, none when there is no file yet; raises `RecordError`."""
    return record_file.read_or(paths.find(SECRETS), parse, parse(b""))


def store_keys(paths: Paths, values: Mapping[str, Secret], *, mode: int) -> SecretsEnv:
    """Set variables and leave all else in the file as it is; returns what is there now.

    Raises `PlatformError`, the file then as it was.
    """
    keys = parse(b"")

    def change(before: bytes | None) -> bytes:
        nonlocal keys
        keys = parse(before or b"")
        for name, value in values.items():
            keys = keys.with_value(name, value)
        return keys.render()

    record_file.edit(paths.writable(SECRETS), change, mode=mode, owner=KEYS_OWNER)
    return keys
