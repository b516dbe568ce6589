"""The voice relay: its settings, device support, microphone and service."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from platform_common.control_answers import UNAVAILABLE, VoiceCheck, VoiceStatus
from platform_common.errors import PlatformError
from platform_common.paths import LIMITS, VOICE, Found, Paths
from platform_common.records import limits, record_file
from platform_common.records.limits import Limitation, Limits
from platform_common.resources import data_path
from platform_common.storage.atomic_write import ROOT
from platformctl.root_helper.remote_operation import Nothing, RemoteOperation
from platformctl.services.systemd import switch, unit_states
from platformctl.toml_edit import edited
from platformctl.voice import microphone
from platformctl.voice import settings as voice

UNIT = "platform-voice-relay.service"
_NO_LIMITATION = Limitation("", "")


class NoVoiceError(PlatformError):
    """The device has no voice."""


class Switch(Struct, frozen=True, forbid_unknown_fields=True):
    """The wanted state of the relay."""

    on: bool


class Switched(Struct, frozen=True):
    """Voice was switched; `service` says whether its service was switched too."""

    service: bool


def status(paths: Paths) -> VoiceStatus:
    """The settings in force and their effects; raises `PlatformError`."""
    found = paths.find(VOICE)
    device = _limits(paths)
    config = record_file.read(found, voice.parse)
    if found.shipped:
        config = voice.parse(voice.for_device(_shipped(), device))
    why = _without_voice(device)
    return VoiceStatus(
        voice=config.voice,
        stt=config.stt,
        tts=config.tts,
        relay=config.relay,
        supported=voice.supported(device),
        service_active=unit_states([UNIT])[UNIT].active_state == "active",
        reason=why.reason,
        unblock=why.unblock,
    )


def check_supported(paths: Paths) -> None:
    """Raise `NoVoiceError` on a device without voice."""
    device = _limits(paths)
    if not voice.supported(device):
        why = _without_voice(device)
        reason = f": {why.reason.rstrip('.')}" if why.reason else ""
        raise NoVoiceError(f"This device has no voice{reason}", hint=why.unblock)


def _check(paths: Paths) -> VoiceCheck:
    """Listen to the microphone for a second; raises `PlatformError` for invalid settings."""
    config = record_file.read(paths.find(VOICE), voice.parse)
    return microphone.check(config.voice.audio_device)


def change(paths: Paths, changes: Mapping[tuple[str, str], str | bool]) -> None:
    """Change settings, starting from the shipped ones; raises `PlatformError`."""

    def changed(before: bytes | None) -> bytes:
        if before is None:
            before = voice.for_device(_shipped(), _limits(paths))
        return edited(before, changes, voice.parse)

    record_file.edit(paths.path_of(VOICE), changed, mode=0o644, owner=ROOT)


def _switch(paths: Paths, *, on: bool) -> Switched:
    """Switch the relay and its service on or off.

    The service is not touched without systemd, or for a device in a folder, whose services
    do not run on this machine. Raises `PlatformError`.
    """
    if on:
        check_supported(paths)
    change(paths, {("voice", "enabled"): on})
    here = paths.is_machine and unit_states([UNIT])[UNIT].active_state != UNAVAILABLE
    if here:
        switch(UNIT, on=on)
    return Switched(service=here)


_PLACES = (VOICE, LIMITS)
CHECK = RemoteOperation(
    "voice-check", Nothing, VoiceCheck, lambda paths, *_: _check(paths), places=_PLACES
)
SWITCH = RemoteOperation(
    "voice-switch",
    Switch,
    Switched,
    lambda paths, wanted, _: _switch(paths, on=wanted.on),
    changes=True,
    places=_PLACES,
)


def _without_voice(device: Limits) -> Limitation:
    """Why the device has no voice, from its limits; empty if it has, or without a reason."""
    if voice.supported(device):
        return _NO_LIMITATION
    about = (one for one in device.limitations if "voice" in one.id or "audio" in one.id)
    return next(about, _NO_LIMITATION)


def _limits(paths: Paths) -> Limits:
    return record_file.read(paths.find(LIMITS), limits.parse)


def _shipped() -> bytes:
    return record_file.read(Found(data_path(VOICE.shipped), shipped=True), lambda data: data)
