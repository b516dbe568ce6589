"""Device limits: one shipped file per target, and unknown members."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from platform_common.formats.decode import from_json
from platform_common.records.limits import Limits, parse
from platform_common.resources import data_path

_FILES = sorted(data_path("limits").iterdir())
_VOICELESS = {
    *("rpi4", "wsl2", "macos-qemu", "digitalocean", "oracle-arm-free", "hetzner-cloud"),
    *("vultr", "linode", "fly-machines", "qemu-aarch64", "qemu-x86_64"),
}


def test_every_target_that_is_built_has_limits() -> None:
    targets = tomllib.loads(data_path("targets.toml").read_text())["targets"]
    assert set(targets) <= {file.stem for file in _FILES}


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_shipped_limits_name_the_target_of_their_file(path: Path) -> None:
    limits = parse(path.read_bytes())
    # The larger board runs the same image.
    assert limits.target == path.stem.removesuffix("-16gb")
    assert bool(limits.cloud) == (limits.storage_class in {"block", "ntfs", "qcow2"})
    assert len({limitation.id for limitation in limits.limitations}) == len(limits.limitations)
    assert all(
        text.endswith(".") for one in limits.limitations for text in (one.reason, one.unblock)
    )


@pytest.mark.parametrize("target", sorted(_VOICELESS))
def test_the_limits_of_a_target_without_sound_say_so(target: str) -> None:
    limits = parse(data_path(f"limits/{target}.json").read_bytes())
    assert not limits.capabilities.voice_wake_word
    assert not limits.capabilities.voice_tts
    assert any("voice" in one.id or "audio" in one.id for one in limits.limitations)


def test_every_member_of_an_answer_is_optional() -> None:
    assert from_json(b"{}", Limits) == Limits()
