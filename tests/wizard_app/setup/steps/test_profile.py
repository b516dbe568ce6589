"""The profile step: what the device runs."""

from __future__ import annotations

import re

from tests.support.dashboard_states import MARKUP
from tests.support.devices import Device
from tests.wizard_app.setup.steps.test_channels import PROFILES, install, limit
from tests.wizard_app.step_pages import StepPage

SLUG = "profile"


def chosen(page: str) -> list[str]:
    """The profiles whose radio button is checked."""
    return re.findall(r'name="profile" type="radio" value="([^"]*)" checked', page)


def test_only_an_installed_profile_is_accepted(step: StepPage) -> None:
    for profile in (
        *("", "  ", "nobody", "OpenClaw", "../openclaw", "openclaw.toml", "openclaw\0", MARKUP),
        "x" * 99,
    ):
        page = step.refuse({"profile": profile})
        assert "Select a profile" in page
        assert MARKUP not in page
    for profile in ("openclaw", "hermes", "khoj"):
        assert step.accept({"profile": profile}) == "/wizard/provider"
        assert step.stored == {"profile": profile}


def test_a_profile_is_only_preselected_if_there_is_no_other(step: StepPage, device: Device) -> None:
    install(device, "mine")
    assert chosen(step.text) == ["mine"]
    install(device, "yours")
    assert chosen(step.text) == []


def test_a_profiles_needs_are_compared_with_the_device(step: StepPage, device: Device) -> None:
    for need_mb, ram_mb, said in (
        (4096, 2048, "Needs 4 GB; this device has 2 GB"),
        (1536, 512, "Needs 1.5 GB; this device has 512 MB"),
        (4096, 4096, "Needs 4 GB of memory"),
        (512, 8192, "Needs 512 MB of memory"),
    ):
        install(device, "mine", need_mb=need_mb)
        limit(device, ram_mb=ram_mb)
        assert said in step.text
        step.accept({"profile": "mine"})
    # Without a known amount of memory there is no warning.
    device.put("/etc/platform/limits.json", "{")
    assert "Needs 512 MB of memory" in step.text
    assert "this device has" not in step.text


def test_without_any_profile_the_page_says_what_to_do(step: StepPage, device: Device) -> None:
    device.path(f"{PROFILES}/none").parent.mkdir(exist_ok=True)
    assert "No profile is installed on this device" in step.text
    assert "<button>Continue</button>" not in step.text
    page = step.refuse({"profile": "openclaw"})
    assert "No profile is installed, so there is nothing to select" in page


def test_fs_09_a_removed_profile_is_refused_and_reported(step: StepPage, device: Device) -> None:
    file = install(device, "mine")
    install(device, "yours")
    assert 'value="mine"' in step.text
    file.unlink()
    assert "Select a profile that is installed" in step.refuse({"profile": "mine"})
    install(device, "mine")
    step.accept({"profile": "mine"})
    file.unlink()
    for page in (step.text, step.review):
        assert "The profile mine is no longer installed: select another one" in page


def test_http_14_the_name_of_a_profile_is_escaped_everywhere(
    step: StepPage, device: Device
) -> None:
    install(device, "mine", name=MARKUP)
    step.accept({"profile": "mine"})
    for page in (step.text, step._replace(slug="channels").text, step.review):
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>alert" not in page
        assert "<img" not in page
