"""Answers that only the control CLI itself reads: from the root helper, and to print."""

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
    """`cost ledger`: its newest messages, oldest first, and lines among them that are none."""

    entries: tuple[LedgerEntry, ...] = ()
    unreadable_lines: int = 0


class ModelSet(Struct, frozen=True):
    """`model set`: the variable that was stored, and which of that provider's have no value.

    `unit` is the gateway that sees it once it is restarted; empty when none is active.
    """

    provider: str = ""
    variable: str = ""
    ok: bool = False
    missing: tuple[str, ...] = ()
    unit: str = ""
