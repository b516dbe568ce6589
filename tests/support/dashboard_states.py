"""Possible answers of the control CLI, as states of the start page: each prepares a stand-in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, timedelta
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
    Outcome,
    Status,
    Tunnel,
    Verdict,
    Version,
    to_json,
)
from platform_common.records.limits import Capabilities
from pwa_app.dashboard.updates import UpdateCheck
from pwa_app.overview import DeviceLimitation, DeviceLimits
from tests.support.control_cli import FakeCtl

LONG = "x" * 10_000
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;"
ODD = f"{MARKUP}\u202e\u0000\u0007\u001b[31m\ufffe {{{{ 7 * 7 }}}} {{x}} %s"


def fine() -> dict[str, dict[str, Any]]:
    """The five answers of a healthy device: call to answer."""
    unit = "openclaw-gateway.service"
    last = date(2026, 11, 21)
    names = ("disk-space", "time-sync", "secrets-mode", "records-readable")
    answers: dict[str, object] = {
        "status": Status(
            *("openclaw", unit, "active", 273_600),
            doctor_fails=0,
            agent=Agent("openclaw", "OpenClaw", unit, "active", unit),
            tunnel=Tunnel("platform-tunnel.service", "active", enabled=True),
            provider=ActiveProvider("openrouter", "OpenRouter", "anthropic/claude-sonnet-4.6"),
            channels=("telegram", "email-imap-smtp", "matrix"),
        ),
        "version": Version(
            *("2026.11.3", "stable", "2026.11.3", "6.1.0-40-arm64", "rpi5"),
            profiles=(
                InstalledProfile("openclaw", "OpenClaw", "2026.4.25", active=True),
                InstalledProfile("khoj", "Khoj", "1.32.0"),
            ),
        ),
        "limits": DeviceLimits(
            *("rpi5", "high", 8192, "high", "nvme"),
            capabilities=Capabilities(
                local_llm=True,
                voice_wake_word=True,
                voice_tts=True,
                channels_heavy=("telegram", "slack"),
                channels_disabled_by_ram=("signal",),
            ),
            limitations=(
                DeviceLimitation(
                    "active-cooling-needed",
                    "Without a fan, the processor slows down while a local model answers.",
                    "Fit the active cooler, or use a cloud provider.",
                ),
            ),
        ),
        "cost": Cost(
            *(0.91, 14.3, 5.0, 100.0, 18.2, 14.3),
            unknown_messages=14,
            days=tuple(
                Day(str(last - timedelta(days=29 - n)), round(0.13 * (n * 7 % 11), 2))
                for n in range(30)
            ),
            recent_expensive=(Expense("2026-11-21T10:00:00Z", "openai", "gpt-4o", 0.41),),
        ),
        "doctor": Verdict(tuple(Check(name, Outcome("Pass")) for name in names), passes=4),
    }
    found: dict[str, dict[str, Any]] = json.loads(msgspec.json.encode(answers))
    return found


def set_answers(ctl: FakeCtl, answers: Mapping[str, object], **options: Any) -> None:
    """Prepare `ctl` with these answers; the calls are named like `status`."""
    for call, answer in answers.items():
        ctl.answer(f"{call} --json", answer, **options)


def _changed(**changes: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    answers = fine()
    for call, members in changes.items():
        answers[call].update(members)
    return answers


def _check(kind: str, name: str, detail: str, fix: str = "") -> dict[str, object]:
    return {"name": name, "outcome": {"kind": kind, "detail": detail}, "fix": fix}


def _warnings(ctl: FakeCtl) -> None:
    checks = [
        _check("Warn", "time-sync", "the clock is not synchronised", "timedatectl set-ntp true"),
        _check("Skip", "tunnel", "no tunnel is set up"),
        _check("Pass", "disk-space", "41 % used"),
    ]
    cost = {"today_usd": 4.2, "daily_pct": 84.0, "daily_state": "warn"}
    set_answers(ctl, _changed(doctor={"checks": checks, "warns": 1, "passes": 1}, cost=cost))


def _problems(ctl: FakeCtl) -> None:
    checks = [
        _check("Pass", "time-sync", ""),
        _check("Fail", "disk-space", "91 % of / is full", "Remove what is not needed, or add room"),
        _check("Warn", "secrets-mode", "secrets.env may be read by all", "chmod 0640 secrets.env"),
    ]
    verdict = {"checks": checks, "fails": 1, "warns": 1, "passes": 1}
    set_answers(ctl, _changed(doctor=verdict))
    ctl.answer("doctor --json", verdict, status=1)


def _over_budget(ctl: FakeCtl) -> None:
    cost = {
        "today_usd": 5.61,
        "daily_state": "tripped",
        "tripped": True,
        "days": [*fine()["cost"]["days"][:-1], {"date": "2026-11-21", "usd": 5.61}],
    }
    answers = _changed(cost=cost, status={"cost_tripped": True})
    # Then the page calculates it.
    del answers["cost"]["daily_pct"]
    set_answers(ctl, answers)


def _partly_silent(ctl: FakeCtl) -> None:
    set_answers(ctl, fine())
    ctl.answer("limits --json", "", status=1, errors="error: limits.json: line 3 is not UTF-8\n")
    ctl.answer("cost --json", "no JSON at all")


def _odd(value: Any, text: str) -> Any:
    match value:
        case str():
            return text
        case list():
            return [_odd(one, text) for one in value]
        case dict():
            kept = {"kind", "daily_state", "monthly_state", "tier", "ram_class", "storage_class"}
            return {k: v if k in kept else _odd(v, text) for k, v in value.items()}
    return value


def _hostile(ctl: FakeCtl) -> None:
    answers = fine()
    answers["doctor"]["checks"] += [_check("Fail", ODD, ODD, ODD), _check("Warn", LONG, LONG, LONG)]
    set_answers(ctl, {call: _odd(answer, ODD) for call, answer in answers.items()})


def _long(ctl: FakeCtl) -> None:
    answers = fine()
    answers["doctor"]["checks"].append(_check("Fail", LONG, LONG, LONG))
    set_answers(ctl, {call: _odd(answer, LONG) for call, answer in answers.items()})


def _huge(ctl: FakeCtl) -> None:
    def grown(value: Any) -> Any:
        match value:
            case bool():
                return value
            case int():
                return 10**300
            case float():
                return 1e308
            case list():
                return [grown(one) for one in value]
            case dict():
                return {k: grown(v) for k, v in value.items()}
        return value

    set_answers(ctl, {call: json.dumps(grown(answer)) for call, answer in fine().items()})


_DOWN = {"active_state": "failed", "uptime_seconds": None, "doctor_fails": 2}
_FAILED: dict[str, Any] = {"status": 1, "errors": "error: no such device\n"}
# The states of /app/dashboard. If none of the five calls fails, the page contains no "stub".
STATES: Mapping[str, Callable[[FakeCtl], None]] = {
    "fine": lambda ctl: set_answers(ctl, fine()),
    "warnings": _warnings,
    "problems": _problems,
    "gateway-down": lambda ctl: set_answers(ctl, _changed(status=_DOWN)),
    "over-budget": _over_budget,
    "partial-stub": _partly_silent,
    "all-stub": lambda ctl: set_answers(ctl, dict.fromkeys(fine(), ""), **_FAILED),
    "empty": lambda ctl: set_answers(ctl, {call: {} for call in fine()}),
    "hostile": _hostile,
    "long": _long,
    "huge": _huge,
}
WITH_STUB = frozenset({"partial-stub", "all-stub"})


def _update(**members: object) -> Callable[[FakeCtl], None]:
    name = "platform-openclaw-rpi5-2026.11.9-stable.img.xz"
    origin = "https://releases.example/stable/manifest.json"
    versions = ("2026.11.3", "2026.11.9", "stable")
    answer = to_json(UpdateCheck(True, *versions, True, "rpi5", "openclaw", name, origin))
    return lambda ctl: ctl.answer("update --check --json", answer | members)


def _no_such_command(ctl: FakeCtl) -> None:
    ctl.answer("update --check --json", status=64, errors="Error: No such command 'update'.\n")


# The states of /app/update.
UPDATE_STATES: Mapping[str, Callable[[FakeCtl], None]] = {
    "available": _update(),
    "current": _update(latest_version="2026.11.3", update_available=False),
    "not-checked": _update(ok=False, update_available=None, reason="the origin does not answer"),
    "no-command": _no_such_command,
    "empty": lambda ctl: ctl.answer("update --check --json", {}),
    "hostile": _update(latest_version=ODD, matching_artefact=LONG, manifest_origin=LONG),
}
