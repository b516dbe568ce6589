"""What the control CLI answers: one shape per call, for who prints it and for who reads it.

Every member has a default, so that any program that prints the same members
can stand in; a member of another type makes the whole answer invalid.
Amounts are US dollars, percentages are of the cap.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from platform_common.formats.decode import from_answer
from platform_common.records.limits import Capabilities

V = TypeVar("V")
UNAVAILABLE = "unavailable"


class Agent(Struct, frozen=True):
    """The gateway of the active profile."""

    profile_id: str = ""
    display_name: str = ""
    unit: str = ""
    active_state: str = UNAVAILABLE
    journal_unit: str = ""


class Tunnel(Struct, frozen=True):
    """The tunnel to the outside."""

    unit: str = ""
    active_state: str = UNAVAILABLE
    enabled: bool = False


class ActiveProvider(Struct, frozen=True):
    """Whose models are used; `model` and `endpoint` where others than the usual were chosen."""

    id: str = ""
    display_name: str = ""
    model: str = ""
    endpoint: str = ""


class Status(Struct, frozen=True):
    """`status`: `doctor_fails` is of the last run of `doctor`, None when there was none.

    `channels` are the ids of those that were chosen when the device was set up.
    """

    profile_id: str = ""
    unit: str = ""
    active_state: str = UNAVAILABLE
    uptime_seconds: int | None = None
    cost_tripped: bool = False
    doctor_fails: int | None = None
    agent: Agent = Agent()
    tunnel: Tunnel = Tunnel()
    provider: ActiveProvider = ActiveProvider()
    channels: tuple[str, ...] = ()


class InstalledProfile(Struct, frozen=True):
    """One profile, of `version` and of `profile list`."""

    id: str = ""
    display_name: str = ""
    pinned_version: str = ""
    active: bool = False


class Version(Struct, frozen=True):
    """`version`: what runs here."""

    binary_version: str = ""
    channel: str = ""
    release_version: str = ""
    kernel: str = ""
    target: str = ""
    profiles: tuple[InstalledProfile, ...] = ()


class DeviceLimitation(Struct, frozen=True):
    """One thing that the device cannot do, why, and what would change that."""

    id: str = ""
    reason: str = ""
    unblock: str = ""


class DeviceLimits(Struct, frozen=True):
    """`limits`: the limits record; its words may be others than those that our own has."""

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


CostState = Literal["ok", "warn", "tripped"]


class Day(Struct, frozen=True):
    """What one day (UTC) cost."""

    date: str = ""
    usd: float = 0.0


class Expense(Struct, frozen=True):
    """One expensive message."""

    timestamp: str = ""
    provider: str = ""
    model: str = ""
    cost_usd: float = 0.0


class Cost(Struct, frozen=True):
    """`cost`: what was spent, and how close that is to the caps."""

    today_usd: float = 0.0
    month_usd: float = 0.0
    daily_cap_usd: float = 0.0
    monthly_cap_usd: float = 0.0
    daily_pct: float = 0.0
    monthly_pct: float = 0.0
    daily_state: CostState = "ok"
    monthly_state: CostState = "ok"
    tripped: bool = False
    unknown_messages: int = 0
    days: tuple[Day, ...] = ()
    recent_expensive: tuple[Expense, ...] = ()


class LedgerEntry(Struct, frozen=True):
    """One message of the ledger; `cost_usd` is 0 when it is unknown."""

    timestamp: str = ""
    provider: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    estimated: bool = False
    cost_unknown: bool = False
    request_id: str = ""


class Ledger(Struct, frozen=True):
    """`cost ledger`: its newest messages, oldest first, and lines among them that are none."""

    entries: tuple[LedgerEntry, ...] = ()
    unreadable_lines: int = 0


class Outcome(Struct, frozen=True):
    """How a check of `doctor` went."""

    kind: Literal["Pass", "Warn", "Fail", "Skip"] = "Skip"
    detail: str = ""


class Check(Struct, frozen=True):
    """One check of `doctor`; `fix` says what to do, for a Fail or a Warn."""

    name: str = ""
    outcome: Outcome = Outcome()
    fix: str = ""


class Verdict(Struct, frozen=True):
    """`doctor`: whether the device is well."""

    checks: tuple[Check, ...] = ()
    fails: int = 0
    warns: int = 0
    passes: int = 0
    skips: int = 0


class Model(Struct, frozen=True):
    """One provider of `model list`.

    `variables` are all that its key consists of, `key_env_var` the first of them;
    `takes_address` says that this one is the address of a server, not a key.
    """

    id: str = ""
    display_name: str = ""
    kind: str = ""
    configured: bool = False
    key_env_var: str = ""
    default_model: str = ""
    masked_key_prefix: str = ""
    active: bool = False
    key_format: str = ""
    endpoint: str = ""
    variables: tuple[str, ...] = ()
    takes_address: bool = False


class ModelTest(Struct, frozen=True):
    """`model test`: whether the provider takes the key; `error` is empty when it does.

    `warning` says of a pass why it does not show the key to be right; else it is empty.
    """

    provider: str = ""
    endpoint: str = ""
    http_status: int | None = None
    elapsed_ms: int = 0
    ok: bool = False
    error: str = ""
    warning: str = ""


class ModelSet(Struct, frozen=True):
    """`model set`: the variable that was stored, and which of that provider's have no value.

    `unit` is the gateway that sees it once it is restarted; empty when none is active.
    """

    provider: str = ""
    variable: str = ""
    ok: bool = False
    missing: tuple[str, ...] = ()
    unit: str = ""


class UpdateCheck(Struct, frozen=True):
    """`update --check`: whether a newer release is there; None is what was not said.

    `matching_artefact` is its file for this device: a name, or what the manifest says of it.
    """

    ok: bool | None = None
    installed_version: str = ""
    latest_version: str = ""
    channel: str = ""
    update_available: bool | None = None
    target: str = ""
    profile: str = ""
    matching_artefact: str | bool | dict[str, Any] | None = None
    manifest_origin: str = ""
    reason: str = ""
    error: str = ""


class _Providers(Struct, frozen=True):
    providers: tuple[Model, ...]


def read_models(data: bytes) -> tuple[Model, ...]:
    """The answer to `model list`: an array, or an object that holds it as `providers`."""
    if data.lstrip().startswith(b"{"):
        return from_answer(data, _Providers).providers
    return from_answer(data, tuple[Model, ...])


def to_json(view: object) -> Any:
    """A view, or several, as what `json.dumps` takes."""
    return msgspec.to_builtins(view)
