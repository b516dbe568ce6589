"""Answers of the control CLI that another of our programs reads.

Every member has a default, so that any program that prints the same members can be used
instead; a member with a wrong type makes the whole answer invalid. Amounts are US dollars,
percentages are of the cap.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

UNAVAILABLE = "unavailable"


class Agent(Struct, frozen=True):
    """The gateway of the active profile."""

    profile_id: str = ""
    display_name: str = ""
    unit: str = ""
    active_state: str = UNAVAILABLE
    journal_unit: str = ""


class Tunnel(Struct, frozen=True):
    """The tunnel from the internet."""

    unit: str = ""
    active_state: str = UNAVAILABLE
    enabled: bool = False


class ActiveProvider(Struct, frozen=True):
    """The active provider; `model` and `endpoint` are empty unless they were chosen."""

    id: str = ""
    display_name: str = ""
    model: str = ""
    endpoint: str = ""


class Status(Struct, frozen=True):
    """`status`: `doctor_fails` is from the last run of `doctor`, None if there was none.

    `channels` are the ids that were chosen during setup.
    """

    profile_id: str = ""
    unit: str = ""
    active_state: str = UNAVAILABLE
    uptime_seconds: int | None = None
    cost_tripped: bool = False
    doctor_fails: int | None = None
    agent: Agent = Agent()
    tunnel: Tunnel = Tunnel()
    provider: ActiveProvider = ActiveProvider()
    channels: tuple[str, ...] = ()


class InstalledProfile(Struct, frozen=True):
    """A profile in `version` and `profile list`."""

    id: str = ""
    display_name: str = ""
    pinned_version: str = ""
    active: bool = False


class Version(Struct, frozen=True):
    """`version`: the installed versions."""

    binary_version: str = ""
    channel: str = ""
    release_version: str = ""
    kernel: str = ""
    target: str = ""
    profiles: tuple[InstalledProfile, ...] = ()


CostState = Literal["ok", "warn", "tripped"]


class Day(Struct, frozen=True):
    """The cost of one day (UTC)."""

    date: str = ""
    usd: float = 0.0


class Expense(Struct, frozen=True):
    """One expensive message."""

    timestamp: str = ""
    provider: str = ""
    model: str = ""
    cost_usd: float = 0.0


class Cost(Struct, frozen=True):
    """`cost`: what was spent, and how close that is to the caps."""

    today_usd: float = 0.0
    month_usd: float = 0.0
    daily_cap_usd: float = 0.0
    monthly_cap_usd: float = 0.0
    daily_pct: float = 0.0
    monthly_pct: float = 0.0
    daily_state: CostState = "ok"
    monthly_state: CostState = "ok"
    tripped: bool = False
    unknown_messages: int = 0
    days: tuple[Day, ...] = ()
    recent_expensive: tuple[Expense, ...] = ()


class Outcome(Struct, frozen=True):
    """The outcome of a check of `doctor`."""

    kind: Literal["Pass", "Warn", "Fail", "Skip"] = "Skip"
    detail: str = ""


class Check(Struct, frozen=True):
    """One check of `doctor`; for a Fail or a Warn, `fix` says what to do."""

    name: str = ""
    outcome: Outcome = Outcome()
    fix: str = ""


class Verdict(Struct, frozen=True):
    """`doctor`: all checks and their counts."""

    checks: tuple[Check, ...] = ()
    fails: int = 0
    warns: int = 0
    passes: int = 0
    skips: int = 0


class Model(Struct, frozen=True):
    """One provider of `model list`.

    `variables` are all variables of its key, `key_env_var` first; with `takes_address`, that one
    holds the address of a server instead of a key.
    """

    id: str = ""
    display_name: str = ""
    kind: str = ""
    configured: bool = False
    key_env_var: str = ""
    default_model: str = ""
    masked_key_prefix: str = ""
    active: bool = False
    key_format: str = ""
    endpoint: str = ""
    variables: tuple[str, ...] = ()
    takes_address: bool = False


class ModelTest(Struct, frozen=True):
    """`model test`: whether the provider accepts the key; `error` is empty if it does.

    `warning` says why a pass does not prove the key; otherwise it is empty.
    """

    provider: str = ""
    endpoint: str = ""
    http_status: int | None = None
    elapsed_ms: int = 0
    ok: bool = False
    error: str = ""
    warning: str = ""


class VoiceSettings(Struct, frozen=True):
    """Whether the device listens, for which word, and with which models."""

    enabled: bool = False
    wake_word: str = "agent"
    stt_model: str = "whisper-tiny.en"
    tts_voice: str = "en_US-lessac-medium"
    audio_device: str = "default"


class VoiceEngine(Struct, frozen=True):
    """A program and its model."""

    model_path: str = ""
    binary: str = ""


class VoiceRelay(Struct, frozen=True):
    """Where the recognised text is sent, and with which labels."""

    socket_path: str = "/run/platform/relay.sock"
    voice_reply_socket: str = "/run/platform/voice-reply.sock"
    hook_kind: str = "pre-message"
    source_tag: str = "voice"


class VoiceStatus(Struct, frozen=True):
    """`voice status`: the settings, whether the device supports voice, whether it runs.

    Without support, `reason` says why, and `unblock` what would change that.
    """

    voice: VoiceSettings = VoiceSettings()
    stt: VoiceEngine = VoiceEngine()
    tts: VoiceEngine = VoiceEngine()
    relay: VoiceRelay = VoiceRelay()
    supported: bool = False
    service_active: bool = False
    reason: str = ""
    unblock: str = ""


class VoiceCheck(Struct, frozen=True):
    """`voice check`: whether the microphone gives sound; `error` says why not.

    `peak_dbfs` is its loudest sample, in decibels relative to full scale.
    """

    device: str = ""
    ok: bool = False
    peak_dbfs: float | None = None
    error: str = ""


def to_json(view: object) -> Any:
    """Convert one or several answers for `json.dumps`."""
    return msgspec.to_builtins(view)
