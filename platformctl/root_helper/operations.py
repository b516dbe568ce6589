"""What the root helper does for programs that are not root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from platform_common.paths import Paths
from platform_common.root_helper.messages import OPERATION, REQUEST_LIMIT_BYTES, SetUp, SetupRequest
from platformctl.cost import service as spending
from platformctl.keys import models
from platformctl.root_helper.server import Operation, Tell
from platformctl.voice import voice

if TYPE_CHECKING:
    from platform_common.control_answers import Verdict
    from platform_common.provider_key.result import KeyCheck

AtOnce = Callable[[Paths, Any], object]


def _read(shape: type[Any], function: AtOnce) -> Operation:
    return Operation(shape, lambda paths, asked, _: function(paths, asked), changes=False)


def _change(shape: type[Any], function: AtOnce) -> Operation:
    return Operation(shape, lambda paths, asked, _: function(paths, asked), changes=True)


def _test(paths: Paths, asked: models.Testing) -> KeyCheck:
    # It alone needs HTTP.
    from platformctl.keys import check as key_check

    return key_check.check_asked(paths, asked)


def _doctor(paths: Paths, _: models.Nothing) -> Verdict:
    # It alone needs the checks.
    from platformctl.checks import doctor

    return doctor.examine_asked(paths)


def _set_up(paths: Paths, asked: SetupRequest, tell: Tell) -> SetUp:
    # It alone needs the wizard.
    from platformctl.setup import apply as setting_up

    return setting_up.apply_asked(paths, asked, tell)


OPERATIONS: Mapping[str, Operation] = {
    "cost": _read(models.Nothing, spending.summary_asked),
    "cost-ledger": _read(spending.Newest, spending.newest_asked),
    "cost-reset": _change(models.Nothing, spending.reset_asked),
    "cost-set": _change(spending.NewCaps, spending.set_asked),
    "doctor": _read(models.Nothing, _doctor),
    "model-list": _read(models.Nothing, models.list_asked),
    "model-set": _change(models.Setting, models.set_asked),
    "model-test": _read(models.Testing, _test),
    OPERATION: Operation(SetupRequest, _set_up, changes=True, limit_bytes=REQUEST_LIMIT_BYTES),
    "voice-check": _read(voice.Nothing, voice.check_asked),
    "voice-switch": _change(voice.Switch, voice.switch_asked),
}
