"""`status`: what it knows without systemd, and how it copes with broken records."""

from __future__ import annotations

import json

import pytest

from platformctl.commands.status import _duration
from platformctl.status import TUNNEL_UNIT
from tests.support.devices import Device, set_up

NO_PROVIDER = {"id": "", "display_name": "", "model": "", "endpoint": ""}
OPENAI = NO_PROVIDER | {"id": "openai", "display_name": "OpenAI"}
MODEL = {"model": "gpt-4o"}
NOTHING: dict[str, object] = {
    "profile_id": "",
    "unit": "",
    "active_state": "unavailable",
    "uptime_seconds": None,
    "cost_tripped": False,
    "doctor_fails": None,
    "agent": dict.fromkeys(("profile_id", "display_name", "unit", "journal_unit"), "")
    | {"active_state": "unavailable"},
    "tunnel": {"unit": TUNNEL_UNIT, "active_state": "unavailable", "enabled": False},
    "provider": NO_PROVIDER,
    "channels": [],
}
ANSWERS = "/var/lib/platform/wizard-state.json"
# No systemd answers, on whatever machine the tests run.
NO_SYSTEMD = {"PATH": "/nowhere"}


def status(device: Device) -> tuple[dict[str, object], str]:
    """The answer of the program, and its warnings."""
    done = device.call("status", "--json", env=NO_SYSTEMD)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer, done.stderr.replace(str(device.root), "")


def test_an_empty_device_has_a_status(device: Device) -> None:
    assert status(device) == (NOTHING, "")


def test_a_configured_device_shows_everything_even_if_some_records_are_broken(
    device: Device,
) -> None:
    set_up(device)
    for name in ("limits.json", "providers.json", "voice.toml", "secrets.env"):
        device.put(f"/etc/platform/{name}", b"\xff\x00[{")
    answer, warnings = status(device)
    device.path("/etc/platform/providers.json").unlink()
    assert warnings == ""
    unit = "openclaw-gateway.service"
    assert status(device)[0] == NOTHING | {
        "profile_id": "openclaw",
        "unit": unit,
        "doctor_fails": 2,
        "agent": {"profile_id": "openclaw", "display_name": "OpenClaw", "unit": unit}
        | {"active_state": "unavailable", "journal_unit": unit},
        "provider": OPENAI | MODEL,
    }
    assert answer["agent"] == status(device)[0]["agent"]


def answers(step: str, *channels: str) -> str:
    """The wizard's answers at `step`."""
    kept = {"version": 2, "started_at": "2026-11-01T12:00:00Z", "step": step}
    return json.dumps(kept | {"answers": {"hostname": "box", "channels": channels}})


def test_the_channels_are_shown_once_the_device_is_set_up(device: Device) -> None:
    set_up(device)
    device.put(ANSWERS, answers("review", "telegram", "irc"), mode=0o600)
    assert status(device)[0]["channels"] == []
    device.put(ANSWERS, answers("done", "telegram", "irc"), mode=0o600)
    assert status(device)[0]["channels"] == ["telegram", "irc"]
    # From the file that the variable names.
    device.environment["WIZARD_STATE_FILE"] = str(device.put("/x.json", answers("done", "irc")))
    assert status(device)[0]["channels"] == ["irc"]


def test_unusable_answers_give_no_channels(device: Device) -> None:
    set_up(device)
    for content in (
        *(b"", b"\xff", b"{}", b"[]", b'{"step": 1}', b'{"step": "done", "answers": []}'),
        b'{"step": "done", "answers": {"channels": "irc"}}',
        b'{"step": "done", "answers": {"channels": ["irc", 1]}}',
        b'{"step": "done", "answers": {"channels": ["../irc"]}}',
        answers("done", *["irc"] * 65).encode(),
        b"[" * 100_000,
        b'{"step": "done", "answers": {}}' + b" " * (2 << 20),
    ):
        device.put(ANSWERS, content, mode=0o600)
        answer, warnings = status(device)
        assert (answer["channels"], warnings) == ([], ""), content[:40]


def test_without_permission_to_read_the_answers_no_channels_are_shown(device: Device) -> None:
    set_up(device)
    device.put(ANSWERS, answers("done", "irc"), mode=0)
    done = device.ctl("status", "--json", privileged=False)
    assert (json.loads(done.stdout)["channels"], done.stderr) == ([], "")


def test_a_chosen_model_and_address_are_shown(device: Device) -> None:
    device.put("/etc/platform/active-provider", "openrouter\n")
    device.put("/etc/platform/active-model", "some/model\n")
    device.put("/etc/platform/active-endpoint", "https://models.example/v1\n")
    assert status(device)[0]["provider"] == {
        "id": "openrouter",
        "display_name": "OpenRouter",
        "model": "some/model",
        "endpoint": "https://models.example/v1",
    }


def test_a_provider_that_is_not_in_the_catalogue_is_shown_by_its_id(device: Device) -> None:
    device.put("/etc/platform/active-provider", "somebody\n")
    provider = NO_PROVIDER | {"id": "somebody", "display_name": "somebody"}
    for content in (None, "", '{"providers": []}'):
        if content is not None:
            device.put("/etc/platform/providers.json", content)
        answer, warnings = status(device)
        assert (answer["provider"], warnings) == (provider, "")


def test_an_address_with_a_password_is_not_shown(device: Device) -> None:
    set_up(device)
    device.put("/etc/platform/active-endpoint", "https://me:canary@models.example/v1\n")
    answer, warnings = status(device)
    assert "canary" not in json.dumps(answer) + warnings
    assert warnings.count("warning:") == 1


def test_a_reached_cap_is_shown(device: Device) -> None:
    set_up(device)
    device.put("/etc/platform/cost.toml", "[caps]\ndaily_usd = 0.5\n")
    assert status(device)[0]["cost_tripped"] is True


@pytest.mark.parametrize(
    ("path", "content", "changes"),
    [
        ("/etc/platform/active-profile", b"\xff", {"profile_id": "", "unit": ""}),
        ("/etc/platform/active-profile", b"gone\n", {"profile_id": "gone", "unit": ""}),
        ("/etc/platform/profiles/openclaw.toml", b"[", {"profile_id": "openclaw", "unit": ""}),
        ("/etc/platform/active-provider", b"a\nb\n", {"provider": NO_PROVIDER | MODEL}),
        ("/etc/platform/active-model", b"\xff", {"provider": OPENAI}),
        ("/etc/platform/active-endpoint", b"nowhere\n", {"provider": OPENAI | MODEL}),
        ("/etc/platform/cost.toml", b"[caps", {"cost_tripped": False}),
        ("/run/platform/doctor.json", b'{"fails": "x"}', {"doctor_fails": None}),
        ("/run/platform/doctor.json", b"[" * 100_000, {"doctor_fails": None}),
    ],
    ids=[
        *("not-utf-8", "not-installed", "invalid-definition", "provider", "model", "endpoint"),
        *("invalid-caps", "doctor", "doctor-nested-too-deeply"),
    ],
)
def test_a_broken_record_only_omits_its_part_and_causes_a_warning(
    path: str, content: bytes, changes: dict[str, object], device: Device
) -> None:
    set_up(device)
    device.put(path, content)
    answer, warnings = status(device)
    assert {name: answer[name] for name in changes} == changes
    # One cause, one warning.
    assert warnings.count("warning:") == 1, warnings


def test_the_text_for_people_is_a_list_of_facts(device: Device) -> None:
    set_up(device)
    device.put(ANSWERS, answers("done", "telegram", "irc"))
    done = device.call("status", env=NO_SYSTEMD)
    assert done.stdout == (
        "Profile   OpenClaw  openclaw\n"
        "Provider  OpenAI  openai gpt-4o\n"
        "Channels  telegram, irc\n"
        "Gateway   ○ unavailable  openclaw-gateway.service\n"
        "Tunnel    ○ unavailable  platform-tunnel.service\n"
        "Cost      ✓ below the caps\n"
        "Doctor    ✗ 2 checks failed, see platformctl doctor\n"
    )


def test_a_duration_is_shown_in_its_two_largest_units() -> None:
    for seconds, words in (
        *((0, "0 s"), (59, "59 s"), (60, "1 min"), (3_661, "1 h 1 min")),
        *((86_400, "1 d"), (86_405, "1 d 5 s"), (400 * 86_400, "400 d")),
    ):
        assert _duration(seconds) == words
