"""The keys of the model providers: listing and setting them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from msgspec import Struct

from platform_common.control_answers import Model
from platform_common.errors import PlatformError, WrongUsageError
from platform_common.paths import (
    ACTIVE_ENDPOINT,
    ACTIVE_MODEL,
    ACTIVE_PROVIDER,
    AIRGAP,
    PROVIDERS,
    SECRETS,
    Paths,
)
from platform_common.records import catalogue, record_file
from platform_common.records.catalogue import Catalogue, Provider
from platform_common.records.installed_profiles import active_profile
from platform_common.records.key_store import read_keys, store_keys
from platform_common.records.secrets_env import SecretsEnv
from platform_common.secret import parse_secret
from platform_common.storage.atomic_write import ROOT, remove_file
from platform_common.validation import check_base_url
from platformctl.answers import ModelSet
from platformctl.device import active_endpoint, line_of
from platformctl.root_helper.remote_operation import Nothing, RemoteOperation


class Listing(Struct, frozen=True):
    """The offered providers, and problems with the catalogue."""

    models: tuple[Model, ...]
    problems: tuple[str, ...] = ()


class SetKeyRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A value for one variable of a provider; by default the key."""

    provider: str
    key: str
    variable: str = ""


def named(paths: Paths, provider_id: str, variable: str) -> tuple[Provider, str]:
    """Return the provider and its variable; raises `WrongUsageError`."""
    provider = next((p for p in _offered(paths, _catalogue(paths)) if p.id == provider_id), None)
    if provider is None:
        raise WrongUsageError(
            # Not repeated: it may be a key in the wrong place, and this also goes to a log.
            "There is no provider with that id on this device",
            hint="List the providers with: platformctl model list",
        )
    if variable and variable not in provider.variables:
        raise WrongUsageError(
            f"{provider.id} has no such variable",
            hint=f"It has {', '.join(provider.variables)}.",
        )
    return provider, variable or provider.key_env_var


def _list(paths: Paths) -> Listing:
    """List the providers with the state of their keys; raises `PlatformError`."""
    keys = read_keys(paths)
    found = _catalogue(paths)
    problems = [f"{paths.find(PROVIDERS).path}: {problem}" for problem in found.problems]

    def known(read: Callable[[Paths], str]) -> str:
        try:
            return read(paths)
        except PlatformError as error:
            problems.append(error.message)
            return ""

    active, chosen = known(line_of(ACTIVE_PROVIDER)), known(active_endpoint)
    models = tuple(
        _model(provider, keys, active=provider.id == active, chosen=chosen)
        for provider in _offered(paths, found)
    )
    return Listing(models, tuple(problems))


def _set_key(paths: Paths, setting: SetKeyRequest) -> ModelSet:
    """Store one variable of a provider, and make that provider the active one.

    Raises `PlatformError`, after which every provider still has its old keys.
    """
    value = parse_secret(setting.key)
    provider, name = named(paths, setting.provider, setting.variable)
    if provider.takes_address and name == provider.key_env_var:
        try:
            check_base_url(value.reveal())
        except ValueError as error:
            raise PlatformError(f"The address {error}") from None
    keys = store_keys(paths, {name: value}, mode=0o600)
    try:
        _make_active(paths, provider.id)
    except PlatformError as error:
        raise PlatformError(
            f"{name} is stored, but {provider.id} is not the active provider: {error.message}",
            hint="Repair that, then run the command again.",
        ) from error
    missing = tuple(name for name in provider.variables if keys.get(name) is None)
    return ModelSet(provider.id, name, ok=True, missing=missing, unit=_gateway(paths))


def _catalogue(paths: Paths) -> Catalogue:
    return record_file.read(paths.find(PROVIDERS), catalogue.parse)


def _offered(paths: Paths, found: Catalogue) -> tuple[Provider, ...]:
    return found.offered(offline=paths.has(AIRGAP))


def _model(provider: Provider, keys: SecretsEnv, *, active: bool, chosen: str) -> Model:
    """`chosen` is the endpoint chosen for the active provider, if any."""
    key = keys.get(provider.key_env_var)
    return Model(
        id=provider.id,
        display_name=provider.display_name,
        kind=provider.kind,
        configured=all(keys.get(name) is not None for name in provider.variables),
        key_env_var=provider.key_env_var,
        default_model=provider.default_model,
        masked_key_prefix="" if key is None else key.masked(),
        active=active,
        key_format=provider.key_format,
        endpoint=(chosen if active else "") or provider.endpoint_default,
        variables=provider.variables,
        takes_address=provider.takes_address,
    )


def _make_active(paths: Paths, provider_id: str) -> None:
    path = paths.path_of(ACTIVE_PROVIDER)
    with contextlib.suppress(PlatformError):
        if record_file.read_line(path) == provider_id:
            return
    # They belong to another provider, whose address must never get this one's key.
    for chosen in (ACTIVE_ENDPOINT, ACTIVE_MODEL):
        remove_file(paths.path_of(chosen))
    record_file.replace(path, f"{provider_id}\n".encode(), mode=0o644, owner=ROOT)


def _gateway(paths: Paths) -> str:
    """The unit of the active profile; empty if there is none, or it cannot be determined."""
    with contextlib.suppress(PlatformError):
        profile = active_profile(paths)
        return profile.unit if profile else ""
    return ""


# The helper always uses the device's own files for these.
PLACES = (SECRETS, PROVIDERS)
LIST = RemoteOperation(
    "model-list", Nothing, Listing, lambda paths, *_: _list(paths), places=PLACES
)
SET_KEY = RemoteOperation(
    "model-set",
    SetKeyRequest,
    ModelSet,
    lambda paths, setting, _: _set_key(paths, setting),
    changes=True,
    places=PLACES,
)
