"""The units that ship: what systemd thinks of them, and what each of them must say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dev.distributions import ROOT
from platformctl.cli import main
from platformctl.services import install as services
from tests.support.running import printed, run

UNITS = {
    place.name: text.decode()
    for place, text in services.files(Path("/usr/bin"))
    if place.parent.name == "system"
}
SERVICES = sorted(name for name in UNITS if name.endswith(".service"))
WEB = ("platform-pwa.service", "platform-wizard.service")
HELPER = "platform-control@.service"
# As systemd-analyze counts, from 0 to 10: what a process could do.
MOST_EXPOSED = {**dict.fromkeys(WEB, 1.2), HELPER: 2.3, "platform-wizard-qr.service": 2.1}
OTHERS_EXPOSED = 1.6
PAGE = (ROOT / "docs/reference/services.md").read_text("utf-8")


def settings(name: str, setting: str) -> list[str]:
    """Every value that a unit gives to a setting, in their order."""
    return re.findall(rf"^{setting}=(.*)$", UNITS[name], re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units, with a program in the place of each that may not be on this machine."""
    folder = tmp_path_factory.mktemp("units")
    for name, text in UNITS.items():
        program = re.compile(r"^(Exec\w+=-?)/\S+", re.MULTILINE)
        (folder / name).write_text(program.sub(r"\1/usr/bin/true", text))
    return folder


def test_systemd_finds_nothing_wrong_with_any_unit(folder: Path) -> None:
    verify = ("systemd-analyze", "verify", "--man=no", "--recursive-errors=yes")
    done = run(*verify, *sorted(folder.iterdir()))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", SERVICES)
def test_n21_a_unit_can_do_no_more_than_it_must_and_the_page_says_how_much(
    name: str, folder: Path
) -> None:
    analyze = ("systemd-analyze", "security", "--offline=true", "--no-pager", folder / name)
    said = printed(*analyze)
    (level,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+) ", said)
    assert float(level) <= MOST_EXPOSED.get(name, OTHERS_EXPOSED), said
    row = re.findall(rf"^\| `{re.escape(name)}` \|.*\| ([0-9.]+) \|$", PAGE, re.MULTILINE)
    assert row == [level]


@pytest.mark.parametrize("name", SERVICES)
def test_wiz_06_no_unit_gains_rights_or_leaves_its_memory_anywhere(name: str) -> None:
    for setting, value in {
        "NoNewPrivileges": "yes",
        "LimitCORE": "0",
        "MemorySwapMax": "0",
        "ProtectSystem": "strict",
    }.items():
        assert settings(name, setting) == [value]
    assert len(settings(name, "MemoryMax")) == len(settings(name, "TasksMax")) == 1


@pytest.mark.parametrize("name", WEB)
def test_d12_no_web_process_is_root(name: str) -> None:
    assert settings(name, "User") == settings(name, "Group") == ["platform"]
    assert settings(name, "CapabilityBoundingSet") == [""]
    assert settings(name, "SupplementaryGroups") in ([], ["systemd-journal"])


@pytest.mark.parametrize("name", [*WEB, "platform-tunnel.service"])
def test_a_unit_that_serves_is_never_given_up(name: str) -> None:
    assert settings(name, "Type") == ["notify"]
    assert settings(name, "Restart") == ["always"]
    assert settings(name, "StartLimitIntervalSec") == ["0"]


def test_what_starts_while_others_still_mount_needs_no_quiet_dev() -> None:
    # systemd cannot make a /dev of a unit's own while something is mounted below the real one.
    early = {name for name in UNITS if settings(name, "DefaultDependencies") == ["no"]}
    assert [name for name in early if settings(name, "PrivateDevices")] == []


def test_units_for_the_first_boot_stop_after_setup() -> None:
    first = {name: settings(name, "ConditionPathExists") for name in UNITS if "wizard" in name}
    assert [*first.values()] == [["!/etc/platform/setup-complete"]] * len(first) != []


@pytest.mark.parametrize("name", sorted(UNITS))
def test_leak_a_unit_says_what_it_is_and_holds_no_secret_and_prints_into_no_file(name: str) -> None:
    assert len(settings(name, "Description")) == 1
    assert f"`{name}`" in PAGE
    given = settings(name, "Environment") + settings(name, "EnvironmentFile")
    assert [one for one in given if re.search(r"KEY|TOKEN|SECRET|secrets\.env", one)] == []
    words = " ".join(settings(name, "ExecStart"))
    assert "secrets.env" not in words
    assert "--token" not in words
    # The journal is the log.
    assert set(settings(name, "StandardError")) <= {"journal"}


def test_every_program_of_a_unit_is_one_of_ours_with_a_command_that_it_has() -> None:
    found = re.findall(
        r"^ExecStart=/usr/bin/([a-z-]+) ([a-z-]+)", "".join(UNITS.values()), re.MULTILINE
    )
    assert set(found) >= {("pwa-app", "serve"), ("platformctl", "control-helper")}
    assert {command for program, command in found if program == "platformctl"} <= set(main.modules)


def test_the_dashboard_is_for_private_networks_alone() -> None:
    assert settings("platform-pwa.socket", "IPAddressDeny") == ["any"]
    assert "0.0.0.0/0" not in " ".join(settings("platform-pwa.socket", "IPAddressAllow"))


def test_every_unit_is_said_to_be_switched_on_or_off() -> None:
    preset = (ROOT / "systemd/platform.preset").read_text("utf-8")
    said = {unit: verb for verb, unit in map(str.split, preset.splitlines())}
    with_install = {name for name, text in UNITS.items() if "[Install]" in text}
    assert set(said) == with_install
    assert [unit for unit, verb in said.items() if verb == "disable"] == ["platform-tunnel.service"]
