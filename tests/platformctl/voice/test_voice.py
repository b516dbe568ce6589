"""`platformctl voice`."""

from __future__ import annotations

import math
import os
import stat
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from platform_common.control_answers import VoiceCheck, VoiceStatus, to_json
from platform_common.errors import PlatformError
from platform_common.formats.decode import from_json
from platform_common.paths import Paths
from platform_common.resources import data_path
from platformctl.voice import microphone, voice
from tests.platformctl.conftest import run_at_terminal, run_on
from tests.support.devices import Device
from tests.support.releases import program
from tests.support.stand_in import path_without, stand_in

CONFIG = "/etc/platform/voice.toml"
OPERATORS = """\
# Kitchen
[voice]   # the part that changes
enabled = false  # until the party is over
wake_word = 'jeeves'
color = "unknown to this version"

[relay]
source_tag = "kitchen"
"""


@pytest.fixture
def device(tmp_path: Path) -> Device:
    """A board that can listen for its wake word."""
    return device_of("rpi5", tmp_path)


def device_of(target: str, root: Path) -> Device:
    device = Device(root)
    limits = data_path(f"limits/{target}.json").read_bytes()
    device.put("/etc/platform/limits.json", limits)
    return device


def status(device: Device) -> VoiceStatus:
    """The answer to `voice status --json`, read as the apps read it."""
    done = device.call("voice", "status", "--json")
    assert done.returncode == 0, done.stderr
    return from_json(done.stdout.encode(), VoiceStatus)


@pytest.mark.parametrize(
    ("target", "supported", "model"),
    [("rpi5-16gb", True, "whisper-base.en"), ("rpi4", False, "whisper-tiny.en")],
)
def test_without_a_file_the_settings_are_the_defaults_of_the_device(
    tmp_path: Path, target: str, supported: bool, model: str
) -> None:
    answer = status(device_of(target, tmp_path))
    assert (answer.supported, answer.voice.stt_model) == (supported, model)
    assert (answer.voice.enabled, answer.service_active) == (False, False)
    assert answer.voice.wake_word == "agent"


def test_the_operators_settings_are_shown(device: Device) -> None:
    device.put(CONFIG, OPERATORS)
    answer = status(device)
    assert (answer.voice.wake_word, answer.relay.source_tag) == ("jeeves", "kitchen")
    assert (answer.reason, answer.unblock) == ("", "")
    shown = device.call("voice", "status").stdout
    assert "Wake word       jeeves" in shown
    assert "This device     can hear a wake word" in shown


def test_enable_and_disable_change_one_word_of_the_operators_file(device: Device) -> None:
    device.put(CONFIG, OPERATORS, mode=0o600)
    done = device.call("voice", "enable", "--yes")
    assert done.returncode == 0, done.stderr
    assert device.path(CONFIG).read_text() == OPERATORS.replace("= false", "= true")
    assert stat.S_IMODE(device.path(CONFIG).stat().st_mode) == 0o644
    assert device.call("voice", "disable").returncode == 0
    assert device.path(CONFIG).read_text() == OPERATORS


def test_without_a_file_a_copy_of_the_shipped_one_is_created(tmp_path: Path) -> None:
    device = device_of("x86_64-mini-pc", tmp_path)
    done = device.call("voice", "enable", "--yes")
    assert done.returncode == 0, done.stderr
    text = device.path(CONFIG).read_text()
    assert text.count("#") == data_path("voice.toml").read_text().count("#")
    assert to_json(status(device)) == to_json(voice.status(device.paths))
    assert 'stt_model = "whisper-small.en"' in text
    assert "enabled = true" in text


def test_a_device_without_voice_gets_the_reason_and_nothing_is_written(tmp_path: Path) -> None:
    device = device_of("digitalocean", tmp_path)
    done, answer = device.call("voice", "enable", "--yes"), status(device)
    assert (done.returncode, device.path(CONFIG).exists()) == (1, False)
    why = f"error: This device has no voice: {answer.reason.rstrip('.')}\n"
    assert done.stderr == f"{why}hint: {answer.unblock}\n"


@pytest.mark.parametrize(
    ("typed", "ended", "enabled"),
    [("y\n", 0, True), ("\n", 1, False), ("n\n", 1, False)],
    ids=["yes", "enter", "no"],
)
def test_the_microphone_is_only_switched_on_after_consent(
    device: Device, typed: str, ended: int, enabled: bool
) -> None:
    code, shown = run_at_terminal(device, "voice", "enable", typed=typed)
    assert (code, status(device).voice.enabled) == (ended, enabled)
    assert "The microphone of this device will be on all the time" in shown


@pytest.mark.parametrize(
    "word", ["computer", "Zoë", "Zoe\u0308", "r2-d2", "o'clock", "7", "x" * 32], ids=ascii
)
def test_a_wake_word_is_set(device: Device, word: str) -> None:
    device.put(CONFIG, OPERATORS)
    done = device.call("voice", "set-wake-word", word)
    # A letter with its accent is one character.
    word = word.replace("e\u0308", "ë")
    assert (done.returncode, done.stderr, status(device).voice.wake_word) == (0, "", word)
    assert device.path(CONFIG).read_text() == OPERATORS.replace("'jeeves'", f'"{word}"')


@pytest.mark.parametrize(
    "word",
    ["", "hey agent", "x" * 33, "-x", "'", "a\nb", 'a"b', "a\\b", "a\u202eb", "a_b", b"\xff"],
    ids=ascii,
)
def test_an_invalid_wake_word_is_wrong_usage(device: Device, word: str | bytes) -> None:
    device.put(CONFIG, OPERATORS)
    done = device.ctl("voice", "set-wake-word", "--", os.fsdecode(word))
    assert (done.returncode, device.path(CONFIG).read_text()) == (64, OPERATORS)


def test_two_simultaneous_changes_are_both_kept(device: Device) -> None:
    device.put(CONFIG, OPERATORS)
    calls = [("enable", "--yes"), ("set-wake-word", "computer")] * 4
    with ThreadPoolExecutor(4) as pool:
        ended = pool.map(lambda call: device.ctl("voice", *call), calls)
        assert [done.stderr for done in ended if done.returncode] == []
    after = OPERATORS.replace("= false", "= true").replace("'jeeves'", '"computer"')
    assert device.path(CONFIG).read_text() == after


def test_fs_02_on_a_read_only_file_system_the_old_file_is_kept(device: Device) -> None:
    path = device.put(CONFIG, OPERATORS)
    lock = path.with_name(".voice.toml.lock")
    faulty = ("strace", "-qq", "-o", "/dev/null", "-P", lock, "-e", "inject=openat:error=EROFS")
    done = run_on(device, *faulty, program("platformctl"), "voice", "disable")
    assert (done.returncode, path.read_text()) == (1, OPERATORS)
    assert done.stderr.startswith(f"error: {path}")
    assert done.stderr.endswith("Read-only file system\n")


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for systemctl that knows the relay; returns the log of its calls."""
    script = (
        f'echo "$*" >>{tmp_path}/calls\n'
        "case $1 in\n"
        'show) printf "LoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\n";;\n'
        f"*) test ! -e {tmp_path}/broken || {{ echo no such thing >&2; exit 5; }};;\n"
        "esac"
    )
    monkeypatch.setenv("PATH", stand_in(tmp_path / "bin", "systemctl", script)["PATH"])
    return tmp_path / "calls"


def at_root(device: Device) -> Paths:
    """The paths of a device whose services are those of this machine."""
    limits = str(device.path("/etc/platform/limits.json"))
    variables = {"PLATFORM_VOICE_CONFIG": str(device.path(CONFIG)), "PLATFORM_LIMITS_FILE": limits}
    return Paths(Path("/"), variables)


def test_switching_voice_starts_or_stops_the_service_and_a_failure_is_reported(
    device: Device, systemctl: Path, tmp_path: Path
) -> None:
    # A device in a folder never switches the services of this machine.
    assert not voice.SWITCH(device.paths, voice.Switch(on=True)).service
    assert not systemctl.exists()
    for verb in ("enable", "disable"):
        assert voice.SWITCH(at_root(device), voice.Switch(verb == "enable")).service
        assert systemctl.read_text().splitlines()[-1] == f"{verb} --now -- {voice.UNIT}"
        assert voice.status(at_root(device)).voice.enabled is (verb == "enable")
    (tmp_path / "broken").touch()
    with pytest.raises(PlatformError, match="no such thing"):
        voice.SWITCH(at_root(device), voice.Switch(on=True))


def test_a_running_relay_must_be_restarted_for_another_wake_word(
    device: Device, systemctl: Path
) -> None:
    done = device.call("voice", "set-wake-word", "computer", env={"PATH": os.environ["PATH"]})
    assert f"systemctl restart {voice.UNIT}" in done.stdout
    assert status(device).service_active


# The microphone, recorded by the real arecord through virtual ALSA devices.

OPENING = "echo 'arecord: main:831: audio open error:"
UNUSABLE = "The microphone default could not be used:"

_TONE = struct.pack("<16000h", *(int(8192 * math.sin(n / 8)) for n in range(16_000)))


def microphone_of(folder: Path, sound: bytes) -> dict[str, str]:
    """The variables for an ALSA whose default device repeats `sound`."""
    (folder / "sound").write_bytes(sound)
    (folder / ".asoundrc").write_text(
        "pcm.!default { type file; slave.pcm null; file /dev/null; format raw;"
        f' infile "{folder}/sound" }}\n'
    )
    return {"HOME": str(folder)}


def checked(device: Device, **environment: str) -> tuple[int, VoiceCheck]:
    done = device.ctl("voice", "check", "--json", env=environment)
    return done.returncode, from_json(done.stdout.encode(), VoiceCheck)


def test_a_microphone_with_sound_works_and_no_recording_is_kept(
    device: Device, tmp_path: Path
) -> None:
    environment = microphone_of(tmp_path, _TONE) | {"TMPDIR": str(tmp_path)}
    before = sorted(tmp_path.rglob("*"))
    assert checked(device, **environment) == (0, VoiceCheck("default", ok=True, peak_dbfs=-12.0))
    shown = device.ctl("voice", "check", env=environment)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Loudest sound  -12.0 dB below full scale" in shown.stdout
    assert sorted(tmp_path.rglob("*")) == before


def test_a_silent_microphone_does_not_work(device: Device, tmp_path: Path) -> None:
    code, found = checked(device, **microphone_of(tmp_path, bytes(4096)))
    assert (code, found.ok, found.peak_dbfs) == (1, False, None)
    assert found.error == "The microphone default only gives silence"


def test_the_error_for_a_missing_microphone_names_it(device: Device, tmp_path: Path) -> None:
    device.put(CONFIG, '[voice]\naudio_device = "plughw:7,3"\n')
    code, found = checked(device, HOME=str(tmp_path))
    error = "There is no microphone at plughw:7,3"
    assert (code, found) == (1, VoiceCheck("plughw:7,3", error=error))
    shown = device.ctl("voice", "check", env={"HOME": str(tmp_path)})
    assert (shown.returncode, shown.stdout) == (1, "")
    assert shown.stderr.startswith(f"error: {error}\nhint: List the microphones with: arecord -L")


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (f"{OPENING} Device or resource busy' >&2; exit 1", "Another program uses the microphone"),
        (f"{OPENING} Permission denied' >&2; exit 1", "This user may not use the microphone"),
        ("echo 'arecord: read error: Input' >&2; exit 1", f"{UNUSABLE} arecord: read error: Input"),
        ("exit 3", f"{UNUSABLE} exit code 3"),
        ("exit 0", "The microphone default only gives silence"),
        ("exec cat /dev/zero", "The device default sent more data than was requested"),
        ("", "arecord is not installed; it is in the package alsa-utils"),
    ],
    ids=[
        "busy",
        "no-permission",
        "unplugged",
        "error-without-reason",
        "nothing",
        "endless",
        "no-arecord",
    ],
)
def test_an_error_of_arecord_is_reported_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: str
) -> None:
    folder = tmp_path / "bin"
    there = stand_in(folder, "arecord", script) if script else path_without("arecord", folder)
    monkeypatch.setenv("PATH", there["PATH"])
    whole = f"{error} default" if error.endswith("microphone") else error
    assert microphone.check("default") == VoiceCheck("default", error=whole)


def test_a_sound_card_without_data_is_abandoned_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", stand_in(tmp_path / "bin", "arecord", "exec sleep 60")["PATH"])
    monkeypatch.setattr(microphone, "_TIMEOUT_S", 0.3)
    began = time.monotonic()
    assert microphone.check("default").error == "The microphone default gave no sound within 0.3 s"
    assert time.monotonic() - began < 20


def test_the_loudest_sample_counts() -> None:
    for samples, loudest in (
        *(([0, 0], None), ([], None), ([0, 1], -90.3), ([-1, 0], -90.3)),
        *(([16_384, -3], -6.0), ([-32_768], 0.0)),
    ):
        sound = struct.pack(f"<{len(samples)}h", *samples)
        assert microphone.peak(sound) == microphone.peak(sound + b"\x7f") == loudest
