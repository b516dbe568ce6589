"""Answers that only platformctl reads or prints, such as those of the root helper."""

from __future__ import annotations

from msgspec import Struct


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
