"""`status`: what it knows without systemd, and that nothing that is broken breaks it."""

from __future__ import annotations

import json

import pytest

from platformctl.commands.status import _duration
from platformctl.status import TUNNEL_UNIT
from tests.support.devices import Device, set_up

NOTHING = {
    "profile_id": "",
    "unit": "",
    "active_state": "unavailable",
    "uptime_seconds": None,
    "cost_tripped": False,
    "doctor_fails": None,
    "agent": {
        "profile_id": "",
        "display_name": "",
        "unit": "",
        "active_state": "unavailable",
        "journal_unit": "",
    },
    "tunnel": {"unit": TUNNEL_UNIT, "active_state": "unavailable", "enabled": False},
}
# Whatever machine the tests run on, no systemd answers.
NO_SYSTEMD = {"PATH": "/nowhere"}


def status(device: Device) -> tuple[dict[str, object], str]:
    """What the program says, and its warnings."""
    done = device.ctl("status", "--json", env=NO_SYSTEMD)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer, done.stderr.replace(str(device.root), "")


def test_a_device_without_anything_has_a_status(device: Device) -> None:
    assert status(device) == (NOTHING, "")


def test_a_device_that_is_set_up_tells_all(device: Device) -> None:
    set_up(device)
    answer, warnings = status(device)
    assert warnings == ""
    assert answer == NOTHING | {
        "profile_id": "openclaw",
        "unit": "openclaw-gateway.service",
        "doctor_fails": 2,
        "agent": {
            "profile_id": "openclaw",
            "display_name": "OpenClaw",
            "unit": "openclaw-gateway.service",
            "active_state": "unavailable",
            "journal_unit": "openclaw-gateway.service",
        },
    }


def test_a_reached_cap_is_told(device: Device) -> None:
    set_up(device)
    device.put("/etc/platform/cost.toml", "[caps]\ndaily_usd = 0.5\n")
    assert status(device)[0]["cost_tripped"] is True


@pytest.mark.parametrize(
    ("path", "content", "changes"),
    [
        ("/etc/platform/active-profile", b"\xff", {"profile_id": "", "unit": ""}),
        ("/etc/platform/active-profile", b"gone\n", {"profile_id": "gone", "unit": ""}),
        ("/etc/platform/profiles/openclaw.toml", b"[", {"profile_id": "openclaw", "unit": ""}),
        ("/etc/platform/cost.toml", b"[caps", {"cost_tripped": False}),
        ("/run/platform/doctor.json", b'{"fails": "x"}', {"doctor_fails": None}),
        ("/run/platform/doctor.json", b"[" * 100_000, {"doctor_fails": None}),
    ],
    ids=["no-text", "not-installed", "no-definition", "no-caps", "doctor", "deep-doctor"],
)
def test_a_broken_record_costs_its_own_part_and_a_warning(
    path: str, content: bytes, changes: dict[str, object], device: Device
) -> None:
    set_up(device)
    device.put(path, content)
    answer, warnings = status(device)
    assert {name: answer[name] for name in changes} == changes
    # One cause, one warning.
    assert warnings.count("warning:") == 1, warnings


def test_records_that_nobody_asked_for_do_not_disturb(device: Device) -> None:
    set_up(device)
    for name in ("limits.json", "providers.json", "voice.toml", "secrets.env"):
        device.put(f"/etc/platform/{name}", b"\xff\x00[{")
    assert status(device)[1] == ""


def test_for_people_it_is_a_column_of_facts(device: Device) -> None:
    set_up(device)
    done = device.ctl("status", env=NO_SYSTEMD)
    assert done.stdout == (
        "Profile  OpenClaw  openclaw\n"
        "Gateway  ○ unavailable  openclaw-gateway.service\n"
        "Tunnel   ○ unavailable  platform-tunnel.service\n"
        "Cost     ✓ below the caps\n"
        "Doctor   ✗ 2 checks failed, see platformctl doctor\n"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3_661, "1 h 1 min"),
        (86_400, "1 d"),
        (86_405, "1 d 5 s"),
        (400 * 86_400, "400 d"),
    ],
)
def test_a_time_is_told_in_its_two_largest_units(seconds: int, words: str) -> None:
    assert _duration(seconds) == words
