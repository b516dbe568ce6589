"""Whether the active provider, or another, takes the key that is stored for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from platform_common.errors import PlatformError, WrongUsageError
from platform_common.key_check import check_key
from platform_common.key_store import read_keys
from platform_common.key_verdict import KeyCheck
from platform_common.paths import ACTIVE_ENDPOINT, ACTIVE_MODEL, ACTIVE_PROVIDER, Paths
from platform_common.records.catalogue import Provider
from platform_common.records.record_file import read_line
from platform_common.secret import Secret
from platformctl import models


class Tested(NamedTuple):
    """Which provider was tested, and how that went."""

    provider_id: str
    check: KeyCheck


def run(paths: Paths, provider_id: str = "", model: str = "") -> Tested:
    """Test the key of that provider, the active one by default.

    A test that cannot be made is one that failed. Raises `WrongUsageError` for an
    unknown provider.
    """
    provider = models.named(paths, provider_id, "")[0] if provider_id else None
    try:
        active = read_line(paths.writable(ACTIVE_PROVIDER)) or ""
        provider = provider or _active(paths, active)
        check = _check(paths, provider, model, active=provider.id == active)
    except PlatformError as error:
        check = KeyCheck(ok=False, message=error.message, hint=error.hint)
    return Tested(provider.id if provider else "", check)


def _active(paths: Paths, provider_id: str) -> Provider:
    if not provider_id:
        raise PlatformError(
            "No provider is active on this device",
            hint="Name one with --provider, or choose one with: platformctl model set",
        )
    try:
        return models.named(paths, provider_id, "")[0]
    except WrongUsageError as error:
        # It is the device that is wrong, not the call.
        raise PlatformError(error.message, hint=error.hint) from None


def _check(paths: Paths, provider: Provider, model: str, *, active: bool) -> KeyCheck:
    chosen_endpoint = chosen_model = ""
    if active:  # They were chosen for the active provider alone.
        chosen_endpoint = read_line(paths.writable(ACTIVE_ENDPOINT)) or ""
        chosen_model = read_line(paths.writable(ACTIVE_MODEL)) or ""
    return check_key(
        provider,
        _credentials(paths, provider),
        endpoint=chosen_endpoint,
        model=model or chosen_model or provider.default_model,
    )


def _credentials(paths: Paths, provider: Provider) -> Mapping[str, Secret]:
    keys = read_keys(paths)
    found = {name: value for name in provider.variables if (value := keys.get(name)) is not None}
    for name in provider.variables:
        if name not in found:
            raise PlatformError(
                f"{name} of {provider.display_name} is not set",
                hint=f"Set it with: platformctl model set --provider {provider.id}"
                + (f" --variable {name}" if name != provider.key_env_var else ""),
            )
    return found
