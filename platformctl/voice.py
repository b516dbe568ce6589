"""The voice relay: its settings, whether the device has voice, and its service."""

from __future__ import annotations

from pathlib import Path

from platform_common.errors import PlatformError
from platform_common.files import Owner
from platform_common.paths import LIMITS, VOICE, Found, Paths
from platform_common.records import limits, record_file, voice
from platform_common.records.limits import Limits
from platform_common.records.voice import VoiceStatus
from platform_common.resources import data_path
from platform_common.views import UNAVAILABLE
from platformctl.systemd import disable_now, enable_now, unit_states

UNIT = "platform-voice-relay.service"
_ROOT = Owner("root", "root")


class NoVoiceError(PlatformError):
    """The device has no voice."""


def status(paths: Paths) -> VoiceStatus:
    """The settings that hold, and what comes of them; raises `PlatformError`."""
    found = paths.find(VOICE)
    device = _limits(paths)
    config = record_file.read(found, voice.parse)
    if found.shipped:
        config = voice.parse(voice.for_device(_shipped(), device))
    return VoiceStatus(
        voice=config.voice,
        stt=config.stt,
        tts=config.tts,
        relay=config.relay,
        supported=voice.supported(device),
        service_active=unit_states([UNIT])[UNIT].active_state == "active",
    )


def check_supported(paths: Paths) -> None:
    """Raise `NoVoiceError` on a device without voice."""
    device = _limits(paths)
    if not voice.supported(device):
        why = [one for one in device.limitations if "voice" in one.id or "audio" in one.id]
        reason = f": {why[0].reason.rstrip('.')}" if why else ""
        raise NoVoiceError(f"This device has no voice{reason}", hint=why[0].unblock if why else "")


def change(paths: Paths, changes: voice.Changes) -> None:
    """Change settings, beginning with the shipped ones; raises `PlatformError`."""

    def edited(before: bytes | None) -> bytes:
        if before is None:
            before = voice.for_device(_shipped(), _limits(paths))
        return voice.edited(before, changes)

    record_file.edit(paths.writable(VOICE), edited, mode=0o644, owner=_ROOT)


def switch(paths: Paths, *, on: bool) -> bool:
    """Switch the relay and its service on or off; False when the service was left alone.

    That is so without systemd, and for a device in a folder, whose services are
    not those of this machine. Raises `PlatformError`.
    """
    change(paths, {("voice", "enabled"): on})
    here = paths.root == Path("/") and unit_states([UNIT])[UNIT].active_state != UNAVAILABLE
    if here:
        (enable_now if on else disable_now)(UNIT)
    return here


def _limits(paths: Paths) -> Limits:
    return record_file.read(paths.find(LIMITS), limits.parse)


def _shipped() -> bytes:
    return record_file.read(Found(data_path(VOICE.shipped), shipped=True), lambda data: data)
