"""The step that names the device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flask.testing import FlaskClient

GOOD = {"hostname": "kitchen-agent", "timezone": "Europe/Berlin"}


@pytest.mark.parametrize("name", ["a", "7", "kitchen-agent", "a--b", "x" * 63])
def test_a_name_that_follows_the_rules_is_taken(client: FlaskClient, name: str) -> None:
    answer = client.post("/wizard/system", data=GOOD | {"hostname": name})
    assert (answer.status_code, answer.location) == (302, "/wizard/profile")


def test_blanks_that_a_keyboard_adds_are_left_out(client: FlaskClient, state_file: Path) -> None:
    typed = {"hostname": " kitchen-agent  ", "timezone": "Europe/Berlin "}
    assert client.post("/wizard/system", data=typed).status_code == 302
    assert json.loads(state_file.read_bytes())["answers"] == GOOD


@pytest.mark.parametrize(
    ("name", "error"),
    {
        "": "Enter a device name",
        "   ": "Enter a device name",
        "x" * 64: "Device name must be 63 characters or fewer",
        "Kitchen": "can only contain a to z, 0 to 9 and hyphens",
        "a.b": "can only contain",
        "a_b": "can only contain",
        "a\nb": "can only contain",
        "agent\n": "can only contain",
        "agent\r\n": "can only contain",
        "\u00a0agent": "can only contain",
        "\n": "can only contain",
        "a\0b": "can only contain",
        "küche": "can only contain",
        "\u0430gent": "can only contain",
        "-agent": "cannot start or end with a hyphen",
        "agent-": "cannot start or end with a hyphen",
    }.items(),
)
def test_ssh_07_a_name_that_breaks_a_rule_is_refused_in_words(
    client: FlaskClient, state_file: Path, name: str, error: str
) -> None:
    answer = client.post("/wizard/system", data=GOOD | {"hostname": name})
    assert answer.status_code == 200
    assert '<div class="error">' in answer.text
    assert error in answer.text
    assert not state_file.exists()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires"])
def test_a_time_zone_of_the_database_is_taken(
    client: FlaskClient, state_file: Path, zone: str
) -> None:
    assert client.post("/wizard/system", data=GOOD | {"timezone": zone}).status_code == 302
    assert json.loads(state_file.read_bytes())["answers"]["timezone"] == zone


@pytest.mark.parametrize(
    "zone",
    [
        *("", "Europe/ Berlin", "Mars/Olympus", "../../etc/passwd", "-H", "UTC\0", "/UTC"),
        *("UTC\n", "UTC\r", "\u2028UTC", "UTC\t"),
        *("localtime", "posixrules", "Factory"),
    ],
)
def test_ssh_09_what_is_no_time_zone_is_refused(
    client: FlaskClient, state_file: Path, zone: str
) -> None:
    answer = client.post("/wizard/system", data=GOOD | {"timezone": zone})
    assert answer.status_code == 200
    assert "Enter a time zone, like Europe/Berlin" in answer.text
    assert not state_file.exists()


@pytest.mark.parametrize(
    ("name", "better"),
    {
        "My Kitchen": "my-kitchen",
        "Küche": "kueche",
        "Café №1": "cafe-no1",
        "a_b.": "a-b",
        "K" * 70: "k" * 63,
    }.items(),
)
def test_a_better_name_is_offered_for_one_that_breaks_a_rule(
    client: FlaskClient, state_file: Path, name: str, better: str
) -> None:
    page = client.post("/wizard/system", data=GOOD | {"hostname": name}).text
    assert f'name="better_name" value="{better}"' in page
    again = client.post("/wizard/system", data=GOOD | {"hostname": name, "better_name": better})
    assert again.location == "/wizard/profile"
    assert json.loads(state_file.read_bytes())["answers"]["hostname"] == better


@pytest.mark.parametrize("name", ["", "家", "---"])
def test_no_name_is_offered_where_nothing_is_left_of_one(client: FlaskClient, name: str) -> None:
    page = client.post("/wizard/system", data=GOOD | {"hostname": name}).text
    assert "better_name" not in page
