"""The settings of the voice relay."""

from __future__ import annotations

import tomllib
from typing import Any

import jsonschema
import pytest

from platform_common.formats.decode import DecodingError
from platform_common.records import limits
from platform_common.records.limits import Capabilities, Limits
from platform_common.resources import data_path, schema
from platformctl.toml_edit import edited
from platformctl.voice.settings import (
    Voice,
    VoiceConfig,
    default_model,
    for_device,
    parse,
    supported,
)

SHIPPED = data_path("voice.toml").read_bytes()
# The shipped limits records by name.
DEVICES = {
    path.stem: limits.parse(path.read_bytes()) for path in data_path("limits").glob("*.json")
}
MODELS = {
    "rpi5": "whisper-tiny.en",
    "rpi5-16gb": "whisper-base.en",
    "x86_64-mini-pc": "whisper-small.en",
}


def test_the_shipped_file_disables_voice_and_lists_the_defaults() -> None:
    config = parse(SHIPPED)
    assert config.voice == Voice()
    assert config.relay == VoiceConfig().relay
    assert not config.voice.enabled
    assert config.voice.wake_word == "agent"


def test_the_shipped_file_matches_its_schema_and_names_every_key() -> None:
    tree = tomllib.loads(SHIPPED.decode())
    whole = schema("voice")
    jsonschema.validate(tree, whole)
    named = {section: set(keys) for section, keys in tree.items()}
    engine = set(whole["$defs"]["engine"]["properties"])
    known = {
        section: set(part.get("properties", engine))
        for section, part in whole["properties"].items()
    }
    assert named == known


@pytest.mark.parametrize("data", [b"", b"[voice]\n", b"[relay]\nnew = 1\n[other]\nx = 1\n"])
def test_missing_keys_have_their_defaults(data: bytes) -> None:
    assert parse(data) == VoiceConfig()


GOOD: dict[tuple[str, str], tuple[Any, ...]] = {
    ("voice", "wake_word"): ("x", "Zoë", "o'clock", "r2-d2", "a" * 32),
    ("voice", "stt_model"): ("whisper-small.en",),
    ("voice", "audio_device"): (
        *("default", "plughw:1,0", "hw:CARD=Device,DEV=0", "sysdefault:CARD=PCH"),
    ),
    ("stt", "model_path"): ("",),
    ("tts", "binary"): ("/opt/a b/piper",),
    ("relay", "hook_kind"): ("post-message",),
}
BAD: dict[tuple[str, str], tuple[Any, ...]] = {
    ("voice", "enabled"): ("yes", 1),
    ("voice", "wake_word"): ("", "hey agent", "a" * 33, "-", "'tis", "a\n", "a\u200bb", 7),
    ("voice", "stt_model"): ("whisper-large",),
    ("voice", "tts_voice"): ("../voice",),
    ("voice", "audio_device"): ("", "-q", "hw:1 -q", "pulse"),
    ("stt", "model_path"): ("models/tiny.bin",),
    ("stt", "binary"): ("~/whisper",),
    ("tts", "model_path"): ("/a\0b",),
    ("tts", "binary"): (["/bin/sh"],),
    ("relay", "socket_path"): ("", "/" + "x" * 2000),
    ("relay", "hook_kind"): ("../../x",),
    ("relay", "source_tag"): ("Voice Relay",),
}


def rows(table: dict[tuple[str, str], tuple[Any, ...]]) -> list[tuple[str, str, Any]]:
    """Section, key and value."""
    return [(*place, value) for place, values in table.items() for value in values]


@pytest.mark.parametrize(("section", "key", "value"), rows(GOOD))
def test_a_good_value_is_accepted_by_code_and_schema(section: str, key: str, value: str) -> None:
    data = edited(SHIPPED, {(section, key): value}, parse)
    assert getattr(getattr(parse(data), section), key) == value
    jsonschema.validate(tomllib.loads(data.decode()), schema("voice"))


@pytest.mark.parametrize(("section", "key", "value"), rows(BAD))
def test_a_bad_value_is_never_written_and_its_place_is_named(
    section: str, key: str, value: Any
) -> None:
    with pytest.raises(DecodingError) as caught:
        edited(SHIPPED, {(section, key): value}, parse)
    assert caught.value.message.startswith(f"{section}.{key}")


@pytest.mark.parametrize("name", DEVICES)
def test_voice_is_supported_on_targets_with_a_microphone_and_enough_memory(name: str) -> None:
    assert supported(DEVICES[name]) == (name in MODELS)
    assert default_model(DEVICES[name]) == MODELS.get(name, "whisper-tiny.en")


def test_the_speech_model_depends_on_the_target_and_its_memory() -> None:
    for ram_mb, model in ((15_872, "whisper-base.en"), (8_192, "whisper-tiny.en")):
        assert default_model(Limits(target="rpi5", ram_mb=ram_mb)) == model
    hears = Limits(target="arm64-generic", capabilities=Capabilities(voice_wake_word=True))
    assert supported(hears)
    assert default_model(Limits(target="arm64-generic", ram_mb=65_536)) == "whisper-tiny.en"


@pytest.mark.parametrize(("name", "model"), MODELS.items())
def test_a_new_file_names_the_model_of_the_device_and_its_file(name: str, model: str) -> None:
    config = parse(for_device(SHIPPED, DEVICES[name]))
    assert config.voice.stt_model == model
    assert config.stt.model_path == f"/opt/platform/voice/{model}.bin"
