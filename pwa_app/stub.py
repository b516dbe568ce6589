"""Dev-stub mode: a control CLI that starts no program and answers with sample values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec

from platform_common.control_answers import (
    ActiveProvider,
    Agent,
    Check,
    Cost,
    Day,
    Expense,
    InstalledProfile,
    Model,
    Outcome,
    Status,
    Tunnel,
    Verdict,
    Version,
    VoiceStatus,
)
from platform_common.message import Sentence
from platform_common.process.run import Finished
from platform_common.records.limits import Capabilities
from pwa_app.dashboard.updates import UpdateCheck
from pwa_app.overview import DeviceLimitation, DeviceLimits

_UNIT = "openclaw.service"


_ANSWERS: Mapping[tuple[str, ...], Any] = {
    ("status", "--json"): Status(
        profile_id="openclaw",
        unit=_UNIT,
        active_state="active",
        uptime_seconds=273_600,
        doctor_fails=0,
        agent=Agent("openclaw", "OpenClaw", _UNIT, "active", _UNIT),
        tunnel=Tunnel("platform-tunnel.service", "inactive"),
        provider=ActiveProvider("openai", "OpenAI", "gpt-4o"),
        channels=("telegram", "matrix"),
    ),
    ("version", "--json"): Version(
        binary_version="2026.11.1",
        channel="stable",
        release_version="2026.11.1",
        kernel="6.1.0",
        target="qemu-x86_64",
        profiles=(InstalledProfile("openclaw", "OpenClaw", "2026.11.1", active=True),),
    ),
    ("limits", "--json"): DeviceLimits(
        target="qemu-x86_64",
        tier="standard",
        ram_mb=4096,
        ram_class="standard",
        storage_class="ssd",
        capabilities=Capabilities(channels_disabled_by_ram=("signal",)),
        limitations=(
            DeviceLimitation(
                "no-audio",
                "The virtual machine has no microphone or loudspeaker.",
                "Use voice on a separate device.",
            ),
        ),
    ),
    ("doctor", "--json"): Verdict(
        checks=(
            Check("disk-space", Outcome("Pass", "41 % used")),
            Check("time-sync", Outcome("Warn", "the clock is not synchronised"), "timedatectl"),
        ),
        passes=1,
        warns=1,
    ),
    ("voice", "status", "--json"): VoiceStatus(supported=True),
    ("update", "--check", "--json"): UpdateCheck(
        ok=True,
        installed_version="2026.11.1",
        latest_version="2026.11.9",
        channel="stable",
        update_available=True,
        target="qemu-x86_64",
        profile="openclaw",
        matching_artefact="platform-openclaw-qemu-x86_64-2026.11.9-stable.qcow2",
        manifest_origin="https://releases.example/stable/manifest.json",
    ),
    ("model", "list", "--json"): (
        Model("openai", "OpenAI", "chat-reference", True, "OPENAI_API_KEY", "gpt-4o", "sk-…"),
        Model("openrouter", "OpenRouter", "chat-compatible", False, "OPENROUTER_API_KEY"),
    ),
}


class StubCli:
    """Answers every call of the pages; `reason` says why it is used."""

    def __init__(self, reason: Sentence) -> None:
        self.sample: Sentence | None = reason

    def run(
        self, words: Sequence[str], *, stdin: bytes = b"", limit_s: float | None = None
    ) -> Finished:
        """Return the sample answer; a call without one fails like an unknown command."""
        # The days of the sample cost are the last ones.
        costs = tuple(words) == ("cost", "--json")
        answer = _cost(datetime.now(UTC).date()) if costs else _ANSWERS.get(tuple(words))
        if answer is None:
            return Finished(64, b"", b"error: there are no sample values for this call\n")
        return Finished(0, msgspec.json.encode(answer))


def _cost(today: date) -> Cost:
    amounts = [0.12 * (day * 7 % 11) for day in range(30)]
    days = tuple(
        Day(str(today - timedelta(days=29 - number)), round(usd, 2))
        for number, usd in enumerate(amounts)
    )
    return Cost(
        today_usd=days[-1].usd,
        month_usd=round(sum(day.usd for day in days), 2),
        daily_cap_usd=5,
        monthly_cap_usd=100,
        daily_pct=days[-1].usd / 5 * 100,
        monthly_pct=round(sum(day.usd for day in days), 2),
        unknown_messages=3,
        days=days,
        recent_expensive=(Expense(f"{today}T00:00:00Z", "openai", "gpt-4o", 0.41),),
    )
