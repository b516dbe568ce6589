"""The operations of the root helper."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from platformctl.root_helper.remote_operation import RemoteOperation

# Imported on demand, because one helper process serves one request.
OPERATIONS: Mapping[str, str] = {
    "cost": "platformctl.cost.service.SUMMARY",
    "cost-ledger": "platformctl.cost.service.NEWEST",
    "cost-reset": "platformctl.cost.service.RESET",
    "cost-set": "platformctl.cost.service.SET_CAPS",
    "doctor": "platformctl.checks.doctor.EXAMINE",
    "model-list": "platformctl.keys.models.LIST",
    "model-set": "platformctl.keys.models.SET_KEY",
    "model-test": "platformctl.keys.check.TEST_KEY",
    "setup-apply": "platformctl.setup.apply.APPLY",
    "voice-check": "platformctl.voice.voice.CHECK",
    "voice-switch": "platformctl.voice.voice.SWITCH",
}


def find_operation(name: str) -> RemoteOperation[Any, Any] | None:
    """Return the operation called `name`, or None."""
    if name not in OPERATIONS:
        return None
    module, _, attribute = OPERATIONS[name].rpartition(".")
    operation: RemoteOperation[Any, Any] = getattr(import_module(module), attribute)
    return operation
