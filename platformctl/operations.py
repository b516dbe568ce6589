"""What the root helper does for programs that are not root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from platform_common.control_helper import Operation
from platform_common.paths import Paths
from platform_common.setup import OPERATION, REQUEST_LIMIT_BYTES, SetUp, SetupRequest
from platformctl import models, voice

if TYPE_CHECKING:
    from platform_common.key_verdict import KeyCheck


def _test(paths: Paths, asked: models.Testing) -> KeyCheck:
    # It alone needs HTTP.
    from platformctl import key_test

    return key_test.test_asked(paths, asked)


def _set_up(paths: Paths, asked: SetupRequest) -> SetUp:
    # It alone needs the wizard.
    from platformctl import setup

    return setup.apply_asked(paths, asked)


OPERATIONS: Mapping[str, Operation] = {
    "model-list": Operation(models.Nothing, models.list_asked),
    "model-set": Operation(models.Setting, models.set_asked),
    "model-test": Operation(models.Testing, _test),
    OPERATION: Operation(SetupRequest, _set_up, REQUEST_LIMIT_BYTES),
    "voice-check": Operation(voice.Nothing, voice.check_asked),
    "voice-switch": Operation(voice.Switch, voice.switch_asked),
}
