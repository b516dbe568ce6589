"""The system step: the name and the time zone of the device."""

from __future__ import annotations

from tests.wizard_app.step_pages import StepPage

SLUG = "system"
GOOD = {"hostname": "kitchen-agent", "timezone": "Europe/Berlin"}
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
BAD_ZONES = [
    *("", "Europe/ Berlin", "Mars/Olympus", "../../etc/passwd", "-H", "UTC\0", "/UTC"),
    *("UTC\n", "UTC\r", "\u2028UTC", "UTC\t", "localtime", "posixrules", "Factory"),
]


def test_valid_names_and_zones_are_accepted_without_surrounding_blanks(step: StepPage) -> None:
    for name in ("a", "7", "kitchen-agent", "a--b", "x" * 63):
        for zone in ("Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires"):
            form = {"hostname": f" {name}  ", "timezone": f"{zone} "}
            assert step.accept(form) == "/wizard/profile"
            assert step.stored == {"hostname": name, "timezone": zone}


def test_ssh_07_and_ssh_09_an_invalid_name_or_zone_is_refused(step: StepPage) -> None:
    for name, error in NAMES.items():
        step.refuse(GOOD, error, hostname=name)
    for zone in BAD_ZONES:
        step.refuse(GOOD, "Enter a time zone, like Europe/Berlin", timezone=zone)
    assert not step.state_file.exists()


def test_a_valid_name_is_suggested_for_an_invalid_one(step: StepPage) -> None:
    for name, better in {
        "My Kitchen": "my-kitchen",
        "Küche": "kueche",
        "Café №1": "cafe-no1",
        "a_b.": "a-b",
        "K" * 70: "k" * 63,
    }.items():
        offer = f'name="better_name" value="{better}"'
        assert offer in step.refuse(GOOD, hostname=name)
        assert step.accept(GOOD, hostname=name, better_name=better) == "/wizard/profile"
        assert step.stored["hostname"] == better
    # No suggestion if nothing remains of the name.
    for name in ("", "家", "---"):
        assert "better_name" not in step.refuse(GOOD, hostname=name)
