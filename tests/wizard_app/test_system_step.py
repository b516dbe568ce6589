"""The step that names the device."""

from __future__ import annotations

import json
from pathlib import Path

from flask.testing import FlaskClient

GOOD = {"hostname": "kitchen-agent", "timezone": "Europe/Berlin"}


def test_names_and_zones_that_follow_the_rules_are_taken_without_blanks_around_them(
    client: FlaskClient, state_file: Path
) -> None:
    for name in ("a", "7", "kitchen-agent", "a--b", "x" * 63):
        for zone in ("Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires"):
            form = {"hostname": f" {name}  ", "timezone": f"{zone} "}
            answer = client.post("/wizard/system", data=form)
            assert (answer.status_code, answer.location) == (302, "/wizard/profile")
            stored = json.loads(state_file.read_bytes())["answers"]
            assert stored == {"hostname": name, "timezone": zone}


NAMES = {
    "": "Enter a device name",
    "   ": "Enter a device name",
    "x" * 64: "Device name must be 63 characters or fewer",
    "Kitchen": "can only contain a to z, 0 to 9 and hyphens",
    **dict.fromkeys(
        ("a.b", "a_b", "a\nb", "agent\n", "agent\r\n", "\u00a0agent"), "can only contain"
    ),
    **dict.fromkeys(("\n", "a\0b", "küche", "\u0430gent"), "can only contain"),
    **dict.fromkeys(("-agent", "agent-"), "cannot start or end with a hyphen"),
}


def test_ssh_07_a_name_that_breaks_a_rule_is_refused_in_words(
    client: FlaskClient, state_file: Path
) -> None:
    for name, error in NAMES.items():
        answer = client.post("/wizard/system", data=GOOD | {"hostname": name})
        assert answer.status_code == 200
        assert '<div class="error">' in answer.text
        assert error in answer.text, name
    assert not state_file.exists()


def test_ssh_09_what_is_no_time_zone_is_refused(client: FlaskClient, state_file: Path) -> None:
    for zone in (
        *("", "Europe/ Berlin", "Mars/Olympus", "../../etc/passwd", "-H", "UTC\0", "/UTC"),
        *("UTC\n", "UTC\r", "\u2028UTC", "UTC\t", "localtime", "posixrules", "Factory"),
    ):
        answer = client.post("/wizard/system", data=GOOD | {"timezone": zone})
        assert answer.status_code == 200
        assert "Enter a time zone, like Europe/Berlin" in answer.text, zone
    assert not state_file.exists()


def test_a_better_name_is_offered_for_one_that_breaks_a_rule(
    client: FlaskClient, state_file: Path
) -> None:
    for name, better in {
        "My Kitchen": "my-kitchen",
        "Küche": "kueche",
        "Café №1": "cafe-no1",
        "a_b.": "a-b",
        "K" * 70: "k" * 63,
    }.items():
        page = client.post("/wizard/system", data=GOOD | {"hostname": name}).text
        assert f'name="better_name" value="{better}"' in page
        again = client.post("/wizard/system", data=GOOD | {"hostname": name, "better_name": better})
        assert again.location == "/wizard/profile"
        assert json.loads(state_file.read_bytes())["answers"]["hostname"] == better
    # None where nothing is left of it.
    for name in ("", "家", "---"):
        page = client.post("/wizard/system", data=GOOD | {"hostname": name}).text
        assert "better_name" not in page
