"""Tests a microphone: records a second of sound and measures it, without storing it."""

from __future__ import annotations

import math
import shutil
import sys
from array import array
from collections.abc import Mapping

from platform_common.control_answers import VoiceCheck
from platform_common.process.run import Finished, ProcessError, TooLongError, run

_PROGRAM = "arecord"
# Raw samples on standard output, as the speech models need them: 16 bit, 16 kHz, mono.
_FORMAT = ("--file-type=raw", "--format=S16_LE", "--rate=16000", "--channels=1", "--duration=1")
_TIMEOUT_S = 6.0
_FULL_SCALE = 32_768
# arecord's error for a device that it cannot open, and our message; {} is the device.
_REASONS: Mapping[str, str] = {
    "Device or resource busy": "Another program uses the microphone {}",
    "Permission denied": "This user may not use the microphone {}",
    "No such file or directory": "There is no microphone at {}",
    "No such device": "There is no microphone at {}",
    "Invalid argument": "The device {} cannot record in the format that the speech model needs",
}


def check(device: str) -> VoiceCheck:
    """Record from the ALSA device `device`; the answer contains any error."""
    try:
        done = run(
            [_PROGRAM, "--quiet", *_FORMAT, f"--device={device}"],
            timeout_s=_TIMEOUT_S,
        )
    except TooLongError:
        return VoiceCheck(device, error=f"The device {device} sent more data than was requested")
    except ProcessError as error:
        return VoiceCheck(device, error=_not_run(device, error))
    if done.status:
        return VoiceCheck(device, error=_reason(device, done))
    loudest = peak(done.output)
    if loudest is None:
        return VoiceCheck(device, error=f"The microphone {device} only gives silence")
    return VoiceCheck(device, ok=True, peak_dbfs=loudest)


def peak(samples: bytes) -> float | None:
    """The loudest of `samples` in decibels below full scale; None if all are zero."""
    values = array("h", samples[: len(samples) // 2 * 2])
    if sys.byteorder == "big":
        values.byteswap()
    loudest = max(map(abs, values), default=0)
    return round(20 * math.log10(loudest / _FULL_SCALE), 1) if loudest else None


def _not_run(device: str, error: ProcessError) -> str:
    if shutil.which(_PROGRAM) is None:
        return f"{_PROGRAM} is not installed; it is in the package alsa-utils"
    if isinstance(error.__cause__, OSError):
        return error.message
    return f"The microphone {device} gave no sound within {_TIMEOUT_S:g} s"


def _reason(device: str, done: Finished) -> str:
    said = done.last_line
    for words, reason in _REASONS.items():
        if said.endswith(words):
            return reason.format(device)
    return f"The microphone {device} could not be used: {said or f'exit code {done.status}'}"
