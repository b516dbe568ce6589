"""Whether the active provider, or another, takes the key that is stored for it, or a given one.

Who is not root has the root helper do it where a stored value is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from platform_common.errors import PlatformError, WrongUsageError
from platform_common.paths import ACTIVE_ENDPOINT, ACTIVE_MODEL, ACTIVE_PROVIDER, Paths
from platform_common.provider_key.check import check_key
from platform_common.provider_key.result import KeyCheck
from platform_common.records.catalogue import Provider
from platform_common.records.key_store import read_keys
from platform_common.records.record_file import read_line
from platform_common.root_helper import client as control_helper
from platform_common.secret import Secret
from platformctl.keys import models
from platformctl.keys.typed_key import GivenKey

_NOTHING: Mapping[str, Secret] = MappingProxyType({})


class Tested(NamedTuple):
    """Which provider was tested, and how that went."""

    provider_id: str
    check: KeyCheck


def run(
    paths: Paths, provider_id: str = "", model: str = "", given: GivenKey | None = None
) -> Tested:
    """Test the key of that provider, the active one by default, or the `given` one.

    What is not given is the stored value. A test that cannot be made is one that
    failed. Raises `WrongUsageError` for an unknown provider.
    """
    provider = models.named(paths, provider_id, "")[0] if provider_id else None
    try:
        active = read_line(paths.writable(ACTIVE_PROVIDER)) or ""
        provider = provider or _active(paths, active)
        values = _by_variable(provider, given) if given else _NOTHING
        check = _check(paths, provider, model, values, active=provider.id == active)
    except PlatformError as error:
        check = KeyCheck(ok=False, message=error.message, hint=error.hint)
    return Tested(provider.id if provider else "", check)


def check_asked(paths: Paths, asked: models.Testing) -> KeyCheck:
    """The helper's operation `model-test`; raises `PlatformError`."""
    provider = models.named(paths, asked.provider, "")[0]
    if provider.takes_address and asked.given:
        raise PlatformError("The control helper asks no address that its caller gives")
    given = {name: Secret(value) for name, value in asked.given.items()}
    active = read_line(paths.writable(ACTIVE_PROVIDER)) == provider.id
    return _check(paths, provider, asked.model, given, active=active)


def _by_variable(provider: Provider, given: GivenKey) -> Mapping[str, Secret]:
    if not given.others.keys() <= set(provider.variables[1:]):
        raise PlatformError(
            f"A line behind the key names no other variable of {provider.id}",
            hint=f"They are {', '.join(provider.variables[1:])}."
            if provider.variables[1:]
            else "It needs none.",
        )
    return {provider.key_env_var: given.key, **given.others}


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


def _check(
    paths: Paths, provider: Provider, model: str, given: Mapping[str, Secret], *, active: bool
) -> KeyCheck:
    complete = given.keys() >= set(provider.variables)
    socket = None if complete else models.helper(paths)
    if socket is not None:
        values = {name: value.reveal() for name, value in given.items()}
        asked = {"provider": provider.id, "model": model, "given": values}
        return control_helper.ask(socket, "model-test", asked, KeyCheck)
    chosen_endpoint = chosen_model = ""
    if active:  # They were chosen for the active provider alone.
        chosen_endpoint = read_line(paths.writable(ACTIVE_ENDPOINT)) or ""
        chosen_model = read_line(paths.writable(ACTIVE_MODEL)) or ""
    return check_key(
        provider,
        given if complete else _credentials(paths, provider, given),
        endpoint=chosen_endpoint,
        model=model or chosen_model or provider.default_model,
    ).check


def _credentials(
    paths: Paths, provider: Provider, given: Mapping[str, Secret]
) -> Mapping[str, Secret]:
    keys = read_keys(paths)
    found = dict(given)
    for name in provider.variables:
        value = found.get(name) or keys.get(name)
        if value is None:
            raise PlatformError(
                f"{name} of {provider.display_name} is not set",
                hint=f"Set it with: platformctl model set --provider {provider.id}"
                + (f" --variable {name}" if name != provider.key_env_var else ""),
            )
        found[name] = value
    return found
