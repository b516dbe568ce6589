"""The answers of the control CLI for the states of the system, voice and diagnostics pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from platform_common.control_answers import InstalledProfile, Version, to_json
from tests.support.control_cli import FakeCtl

PAGES = ("/app/system", "/app/voice", "/app/system/diagnostics")
UNIT = "openclaw-gateway.service"
STATUS: Mapping[str, Any] = {
    "profile_id": "openclaw",
    "unit": UNIT,
    "active_state": "active",
    "uptime_seconds": 273_600,
    "doctor_fails": 0,
    "agent": {"profile_id": "openclaw", "display_name": "OpenClaw", "journal_unit": UNIT},
}
VERSION: Mapping[str, Any] = to_json(
    Version(
        *("2026.11.1", "stable", "2026.11.3", "6.12.48+deb13-arm64", "rpi5-16gb"),
        profiles=(
            InstalledProfile("hermes", "Hermes", "0.4.2"),
            InstalledProfile("openclaw", "OpenClaw", "2026.10.2", active=True),
            InstalledProfile("khoj", "Khoj", "2.0.1"),
        ),
    )
)
_VOICE: Mapping[str, Any] = {
    "wake_word": "jeeves",
    "stt_model": "whisper-base.en",
    "tts_voice": "en_US-lessac-medium",
    "audio_device": "plughw:1,0",
}
WORKING_MICROPHONE = {"device": "plughw:1,0", "ok": True, "peak_dbfs": -12.0, "error": ""}
NO_MICROPHONE = {
    "device": "plughw:1,0",
    "ok": False,
    "peak_dbfs": None,
    "error": "There is no microphone at plughw:1,0",
}


def voice(
    *, supported: bool = True, enabled: bool = False, active: bool = False, **more: str
) -> dict[str, Any]:
    """An answer to `voice status`."""
    settings = {**_VOICE, "enabled": enabled}
    return {"voice": settings, "supported": supported, "service_active": active, **more}


def fine(ctl: FakeCtl) -> None:
    """A healthy device, with voice off."""
    ctl.answer("status --json", STATUS)
    ctl.answer("version --json", VERSION)
    ctl.answer("voice status --json", voice())
    ctl.answer("voice check --json", WORKING_MICROPHONE)
    ctl.answer("voice enable --yes", "Voice is on.\n")
    ctl.answer("voice disable", "Voice is off.\n")


def without_members(ctl: FakeCtl) -> None:
    """The control CLI answers without any members."""
    for words in ("status --json", "version --json", "voice status --json"):
        ctl.answer(words, {})


def stopped(ctl: FakeCtl) -> None:
    """The gateway has failed, and names are long."""
    ctl.answer("status --json", {**STATUS, "active_state": "failed", "uptime_seconds": None})
    name = "A_profile_with_a_name_that_goes_on_and_on_without_any_blank_in_it"
    profile = {"id": "long", "display_name": name, "pinned_version": "2" * 40, "active": True}
    ctl.answer(
        "version --json",
        {**VERSION, "profiles": [profile], "kernel": "6" * 60, "target": "t" * 60},
    )
    ctl.answer("voice status --json", voice())


def hostile(ctl: FakeCtl) -> None:
    """Every text is hostile markup."""
    bad = "<script>alert(1)</script>\"'&\u202e"
    ctl.answer("status --json", {**STATUS, "profile_id": bad, "active_state": bad})
    profiles = tuple(InstalledProfile(bad, bad, bad, active) for active in (True, False))
    ctl.answer("version --json", to_json(Version(bad, bad, bad, bad, bad, profiles)))
    ctl.answer("voice status --json", voice(supported=False, reason=bad, unblock=bad))


def _fine_but(**answer: Any) -> Callable[[FakeCtl], None]:
    """A healthy device, with voice as in `voice`."""

    def state(ctl: FakeCtl) -> None:
        fine(ctl)
        ctl.answer("voice status --json", voice(**answer))

    return state


# The reason on a device that is too small for voice.
_TOO_SMALL = {
    "reason": "Its processor is too slow to turn speech into text as one speaks.",
    "unblock": "Use voice on rpi5.",
}
STATES: Mapping[str, Callable[[FakeCtl], None]] = {
    "fine": fine,
    "failing": lambda ctl: None,
    "without-members": without_members,
    "stopped": stopped,
    "hostile": hostile,
    "voice-listening": _fine_but(enabled=True, active=True),
    "voice-on-but-not-running": _fine_but(enabled=True),
    # The relay was started by hand.
    "voice-off-but-running": _fine_but(active=True),
    "without-voice": _fine_but(supported=False, **_TOO_SMALL),
}
