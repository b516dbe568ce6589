"""The settings of the voice relay: `/etc/platform/voice.toml`."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from platform_common import control_answers
from platform_common.formats.decode import check_member, from_toml
from platform_common.records.limits import Limits
from platform_common.validation import check_id
from platformctl.toml_edit import edited

SttModel = Literal["whisper-tiny.en", "whisper-base.en", "whisper-small.en"]
# The first matching row applies: target, minimum memory, speech model.
_MODELS: tuple[tuple[str, int, SttModel], ...] = (
    ("x86_64-mini-pc", 0, "whisper-small.en"),
    # A 16 GB board reports less than 16 GB, and always more than an 8 GB board.
    ("rpi5", 12_288, "whisper-base.en"),
)
_SMALLEST: SttModel = "whisper-tiny.en"
_LONGEST_WAKE_WORD = 32
_LONGEST_PATH = 1024
_WAKE_WORD_MARKS = "-'"
_DEVICE = re.compile(r"default|[a-z][a-z0-9_]*:[A-Za-z0-9_=,.:-]{1,64}")
_VOICE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def check_wake_word(word: str) -> None:
    """Raise `ValueError` unless it can be heard as one word."""
    if not 1 <= len(word) <= _LONGEST_WAKE_WORD:
        raise ValueError(f"must have 1 to {_LONGEST_WAKE_WORD} characters")
    if not word[0].isalnum() or not all(c.isalnum() or c in _WAKE_WORD_MARKS for c in word):
        raise ValueError("must be one word of letters, digits, hyphens and apostrophes")


def _check_device(device: str) -> None:
    if not _DEVICE.fullmatch(device):
        raise ValueError("must be default, or an ALSA device such as plughw:1,0")


def _check_voice_id(voice: str) -> None:
    if not _VOICE_ID.fullmatch(voice):
        raise ValueError("must be the id of a voice, such as en_US-lessac-medium")


def _check_path(path: str) -> None:
    if not path.startswith("/") or not path.isprintable() or len(path) > _LONGEST_PATH:
        raise ValueError("must be an absolute path")


class Voice(control_answers.VoiceSettings, frozen=True):
    """`[voice]`: whether to listen, for which word, and with which models."""

    stt_model: SttModel = _SMALLEST

    def __post_init__(self) -> None:
        """Refuse an invalid wake word, voice or device."""
        check_member("wake_word", check_wake_word, self.wake_word)
        check_member("tts_voice", _check_voice_id, self.tts_voice)
        check_member("audio_device", _check_device, self.audio_device)


class Engine(control_answers.VoiceEngine, frozen=True):
    """`[stt]` and `[tts]`: a program and its model; empty if not installed."""

    def __post_init__(self) -> None:
        """Refuse relative paths."""
        for name in ("model_path", "binary"):
            if getattr(self, name):
                check_member(name, _check_path, getattr(self, name))


class Relay(control_answers.VoiceRelay, frozen=True):
    """`[relay]`: where the recognised text is sent, and with which labels."""

    def __post_init__(self) -> None:
        """Refuse an invalid socket path or name."""
        check_member("socket_path", _check_path, self.socket_path)
        check_member("voice_reply_socket", _check_path, self.voice_reply_socket)
        check_member("hook_kind", check_id, self.hook_kind)
        check_member("source_tag", check_id, self.source_tag)


class VoiceConfig(Struct, frozen=True):
    """The whole file; missing keys have their default."""

    voice: Voice = Voice()
    stt: Engine = Engine()
    tts: Engine = Engine()
    relay: Relay = Relay()


def parse(data: bytes) -> VoiceConfig:
    """Parse the TOML `data`; raises `DecodingError`."""
    return from_toml(data, VoiceConfig)


def for_device(template: bytes, limits: Limits) -> bytes:
    """The shipped settings `template` with the speech model for the device."""
    model = default_model(limits)
    if parse(template).voice.stt_model == model:
        return template
    path = parse(template).stt.model_path.replace(_SMALLEST, model)
    changes = {("voice", "stt_model"): model, ("stt", "model_path"): path}
    return edited(template, changes, parse)


def default_model(limits: Limits) -> SttModel:
    """The speech model for a device: the largest that it can run in real time."""
    for target, ram_mb, model in _MODELS:
        if limits.target == target and limits.ram_mb >= ram_mb:
            return model
    return _SMALLEST


def supported(limits: Limits) -> bool:
    """Whether the device supports voice; only its limits record decides."""
    return limits.capabilities.voice_wake_word
