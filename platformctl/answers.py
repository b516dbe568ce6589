"""Answers that only platformctl reads or prints, such as those of the root helper."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


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
    """`cost ledger`: its newest messages, oldest first, and the number of unreadable lines."""

    entries: tuple[LedgerEntry, ...] = ()
    unreadable_lines: int = 0


class ModelSet(Struct, frozen=True):
    """`model set`: the stored variable, and the provider's variables without a value.

    `unit` is the gateway, which needs a restart to use it; empty if no profile is active.
    """

    provider: str = ""
    variable: str = ""
    ok: bool = False
    missing: tuple[str, ...] = ()
    unit: str = ""


class KeyFile(Struct, frozen=True):
    """A file that holds a secret while a command runs."""

    path: str = ""
    mode: str = ""


class SetupAction(Struct, frozen=True):
    """One action of the plan; members that its kind does not use are empty.

    `action` is write, set, add-keys, remove or run. `kept`: it was done before the wizard
    restarted, and is not repeated. Secrets are masked.
    """

    phase: str = ""
    id: str = ""
    said: str = ""
    kept: bool = False
    action: str = ""
    path: str = ""
    mode: str = ""
    owner: str = ""
    content: str = ""
    variables: Mapping[str, str] = {}
    keys: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    timeout_s: float = 0.0
    key_file: KeyFile | None = None


class Missing(Struct, frozen=True):
    """Something that is missing, and the step it belongs to."""

    step: str = ""
    what: str = ""


class SetupPlan(Struct, frozen=True):
    """`setup plan`: everything that applying the answers will do, in this order.

    `step` is the wizard's current step; `digest` identifies the plan. `lacks` must be
    answered first; `secrets` are not on the device, so the wizard must have them in memory.
    """

    step: str = ""
    digest: str = field(name="mark", default="")
    lacks: tuple[Missing, ...] = ()
    secrets: tuple[Missing, ...] = ()
    actions: tuple[SetupAction, ...] = ()


class AttemptedAction(Struct, frozen=True):
    """The last state of an action: waiting, running, done, failed or kept."""

    id: str = ""
    said: str = ""
    state: str = ""
    at: str = ""
    why: str = ""


class SetupStatus(Struct, frozen=True):
    """`setup status`: whether the device is set up, and how far the last attempt came.

    `outcome` is none, unfinished, failed or done; an unfinished attempt is still running or
    was interrupted. Once `complete`, no wizard starts any more; `completed_at` is empty if
    the time is unknown.
    """

    complete: bool = False
    completed_at: str = ""
    outcome: str = ""
    began_at: str = ""
    actions: tuple[AttemptedAction, ...] = ()
