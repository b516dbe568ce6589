"""The five calls of the dashboard, and the other calls of its pages."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct

from platform_common.control_answers import Cost, Model, Status, Verdict, Version
from platform_common.formats.decode import shaped
from platform_common.message import Sentence
from platform_common.records.limits import Capabilities
from pwa_app.control_client import CliQuery, Slice, object_view


class DeviceLimitation(Struct, frozen=True):
    """One thing that the device cannot do, why, and what would change that."""

    id: str = ""
    reason: str = ""
    unblock: str = ""


class DeviceLimits(Struct, frozen=True):
    """`limits`: the limits record; another control CLI may have words that ours does not know."""

    target: str = ""
    tier: str = ""
    ram_mb: int = 0
    ram_class: str = ""
    storage_class: str = ""
    capabilities: Capabilities = Capabilities()
    limitations: tuple[DeviceLimitation, ...] = ()
    cloud: str = ""
    airgap_supported: bool = False
    airgap_max_tier: str = ""


class _Providers(Struct, frozen=True):
    providers: tuple[Model, ...]


def read_models(tree: Any) -> tuple[Model, ...]:
    """Parse the answer to `model list`: an array, or, from another control CLI, an object."""
    if isinstance(tree, dict):
        return shaped(tree, _Providers).providers
    return shaped(tree, tuple[Model, ...])


STATUS: CliQuery[Status] = object_view(("status", "--json"), Status())
VERSION: CliQuery[Version] = object_view(("version", "--json"), Version())
LIMITS: CliQuery[DeviceLimits] = object_view(("limits", "--json"), DeviceLimits())
COST: CliQuery[Cost] = object_view(("cost", "--json"), Cost())
DOCTOR: CliQuery[Verdict] = object_view(("doctor", "--json"), Verdict())
MODELS: CliQuery[tuple[Model, ...]] = CliQuery(("model", "list", "--json"), read_models, ())
OVERVIEW: tuple[CliQuery[Any], ...] = (STATUS, VERSION, LIMITS, COST, DOCTOR)


class Overview(NamedTuple):
    """The answers for the dashboard, in the order of `OVERVIEW`."""

    status: Slice[Status]
    version: Slice[Version]
    limits: Slice[DeviceLimits]
    cost: Slice[Cost]
    doctor: Slice[Verdict]

    @property
    def all_stub(self) -> bool:
        """Whether all answers are stubs."""
        return all(found.stub for found in self)


class State(NamedTuple):
    """The state of a unit for people; `kind` is ok, warn, bad or none."""

    kind: str
    word: Sentence


_UNKNOWN = State("none", Sentence("Unknown"))
_STATES = {
    "active": State("ok", Sentence("Running")),
    "reloading": State("warn", Sentence("Reloading")),
    "refreshing": State("warn", Sentence("Reloading")),
    "activating": State("warn", Sentence("Starting")),
    "deactivating": State("warn", Sentence("Stopping")),
    "maintenance": State("warn", Sentence("In maintenance")),
    "inactive": State("bad", Sentence("Stopped")),
    "failed": State("bad", Sentence("Failed")),
}


def state_of(active_state: str) -> State:
    """Translate systemd's word for the state of a unit; unknown for any other word."""
    return _STATES.get(active_state, _UNKNOWN)


def gateway_state(status: Status) -> State:
    """The state of the gateway, from either member that may have it."""
    found = state_of(status.active_state)
    return found if found.kind != "none" else state_of(status.agent.active_state)
