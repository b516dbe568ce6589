"""What the root helper does for programs that are not root."""

from __future__ import annotations

from collections.abc import Mapping

from platform_common.control_helper import Operation
from platformctl import models, voice

OPERATIONS: Mapping[str, Operation] = {
    "model-list": Operation(models.Nothing, models.list_asked),
    "model-set": Operation(models.Setting, models.set_asked),
    "voice-check": Operation(voice.Nothing, voice.check_asked),
    "voice-switch": Operation(voice.Switch, voice.switch_asked),
}
