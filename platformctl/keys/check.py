"""Tests a provider's stored key, or a given one.

Only root can read stored values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from platform_common.errors import PlatformError, WrongUsageError
from platform_common.paths import ACTIVE_ENDPOINT, ACTIVE_MODEL, ACTIVE_PROVIDER, Paths
from platform_common.provider_key.check import check_key
from platform_common.provider_key.result import KeyCheck
from platform_common.records.catalogue import Provider
from platform_common.records.key_store import read_keys
from platform_common.records.record_file import read_line
from platform_common.secret import Secret
from platformctl.keys import models
from platformctl.keys.typed_key import GivenKey
from platformctl.root_helper.remote_operation import RemoteOperation

_NOTHING: Mapping[str, Secret] = MappingProxyType({})


class KeyTestRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What to test; `given` replaces stored values, by variable."""

    provider: str
    model: str = ""
    given: dict[str, str] = {}


class KeyTestResult(NamedTuple):
    """The tested provider, and the result."""

    provider_id: str
    check: KeyCheck


def run(
    paths: Paths, provider_id: str = "", model: str = "", given: GivenKey | None = None
) -> KeyTestResult:
    """Test the key of that provider, the active one by default, or the `given` one.

    Other values are the stored ones. A test that cannot be made counts as failed.
    Raises `WrongUsageError` for an unknown provider.
    """
    provider = models.named(paths, provider_id, "")[0] if provider_id else None
    try:
        provider = provider or _active(paths)
        values = _by_variable(provider, given) if given else _NOTHING
        if values.keys() >= set(provider.variables):
            check = _check(paths, provider, model, values)
        else:
            revealed = {name: value.reveal() for name, value in values.items()}
            check = TEST_KEY(paths, KeyTestRequest(provider.id, model, revealed))
    except PlatformError as error:
        check = KeyCheck(ok=False, message=error.message, hint=error.hint)
    return KeyTestResult(provider.id if provider else "", check)


def _test_with_stored(paths: Paths, testing: KeyTestRequest) -> KeyCheck:
    provider = models.named(paths, testing.provider, "")[0]
    if provider.takes_address and testing.given:
        raise PlatformError("The root helper does not accept an address from its caller")
    given = {name: Secret(value) for name, value in testing.given.items()}
    return _check(paths, provider, testing.model, _credentials(paths, provider, given))


TEST_KEY = RemoteOperation(
    "model-test",
    KeyTestRequest,
    KeyCheck,
    lambda paths, testing, _: _test_with_stored(paths, testing),
    places=models.PLACES,
)


def _by_variable(provider: Provider, given: GivenKey) -> Mapping[str, Secret]:
    if not given.others.keys() <= set(provider.variables[1:]):
        raise PlatformError(
            f"A line after the key names a variable that {provider.id} does not have",
            hint=f"It has {', '.join(provider.variables[1:])}."
            if provider.variables[1:]
            else "It needs none.",
        )
    return {provider.key_env_var: given.key, **given.others}


def _active(paths: Paths) -> Provider:
    provider_id = read_line(paths.path_of(ACTIVE_PROVIDER))
    if not provider_id:
        raise PlatformError(
            "No provider is active on this device",
            hint="Give --provider, or choose one with: platformctl model set",
        )
    try:
        return models.named(paths, provider_id, "")[0]
    except WrongUsageError as error:
        # The device is at fault, not the call.
        raise PlatformError(error.message, hint=error.hint) from None


def _check(
    paths: Paths, provider: Provider, model: str, credentials: Mapping[str, Secret]
) -> KeyCheck:
    chosen_endpoint = chosen_model = ""
    # They were only chosen for the active provider.
    if provider.id == read_line(paths.path_of(ACTIVE_PROVIDER)):
        chosen_endpoint = read_line(paths.path_of(ACTIVE_ENDPOINT)) or ""
        chosen_model = read_line(paths.path_of(ACTIVE_MODEL)) or ""
    return check_key(
        provider,
        credentials,
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
