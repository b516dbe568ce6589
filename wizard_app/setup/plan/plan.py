"""The plan: one ordered list of everything that setup will do, made only from the answers.

The review page shows it, and `apply` executes exactly this list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wizard_app.setup.plan.actions import Action
from wizard_app.setup.plan.phases import Phase
from wizard_app.setup.snapshot import Snapshot

_DIGEST_LENGTH = 16


class Item(NamedTuple):
    """An action and its phase.

    `kept` if it was done before a restart and is not repeated: the secret that it stored is no
    longer in memory.
    """

    phase: Phase
    action: Action
    kept: bool = False


Plan = Sequence[Item]


def build_plan(snapshot: Snapshot) -> Plan:
    """Make the plan for the answers so far; missing secrets are `NOT_HELD`."""
    return sorted(_items(snapshot), key=lambda item: item.phase)


def plan_digest(plan: Plan) -> str:
    """Digest of the plan, without secrets."""
    ids = "".join(f"{item.action.id}{item.kept:d}" for item in plan)
    return hashlib.sha256(ids.encode()).hexdigest()[:_DIGEST_LENGTH]


def _items(snapshot: Snapshot) -> Iterator[Item]:
    for step in snapshot.answered():
        for phase, action in snapshot.actions(step):
            kept = action.lacks_secret and action.id in snapshot.applied
            yield Item(phase, action, kept)
