"""The units that ship: systemd accepts them, and each has its required settings."""

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
# The exposure of a process from 0 to 10, as systemd-analyze counts.
MOST_EXPOSED = {**dict.fromkeys(WEB, 1.2), HELPER: 2.3, "platform-wizard-qr.service": 2.1}
OTHERS_EXPOSED = 1.6
PAGE = (ROOT / "docs/reference/services.md").read_text("utf-8")


def settings(name: str, setting: str) -> list[str]:
    """Every value of a setting in a unit, in order."""
    return re.findall(rf"^{setting}=(.*)$", UNITS[name], re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units, with stand-ins for programs that may be missing on this machine."""
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
def test_n21_the_exposure_of_a_unit_is_within_its_limit_and_on_the_page(
    name: str, folder: Path
) -> None:
    analyze = ("systemd-analyze", "security", "--offline=true", "--no-pager", folder / name)
    said = printed(*analyze)
    (level,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+) ", said)
    assert float(level) <= MOST_EXPOSED.get(name, OTHERS_EXPOSED), said
    row = re.findall(rf"^\| `{re.escape(name)}` \|.*\| ([0-9.]+) \|$", PAGE, re.MULTILINE)
    assert row == [level]


@pytest.mark.parametrize("name", SERVICES)
def test_wiz_06_no_unit_gains_privileges_or_writes_core_dumps(name: str) -> None:
    for setting, value in {
        "NoNewPrivileges": "yes",
        "LimitCORE": "0",
        "MemorySwapMax": "0",
        "ProtectSystem": "strict",
    }.items():
        assert settings(name, setting) == [value]
    assert len(settings(name, "MemoryMax")) == len(settings(name, "TasksMax")) == 1


@pytest.mark.parametrize("name", WEB)
def test_d12_no_web_process_runs_as_root(name: str) -> None:
    assert settings(name, "User") == settings(name, "Group") == ["platform"]
    assert settings(name, "CapabilityBoundingSet") == [""]
    assert settings(name, "SupplementaryGroups") in ([], ["systemd-journal"])


@pytest.mark.parametrize("name", [*WEB, "platform-tunnel.service"])
def test_systemd_never_gives_up_restarting_a_server(name: str) -> None:
    assert settings(name, "Type") == ["notify"]
    assert settings(name, "Restart") == ["always"]
    assert settings(name, "StartLimitIntervalSec") == ["0"]


def test_units_that_start_during_mounts_have_no_private_dev() -> None:
    # systemd cannot create a unit's private /dev while something is mounted below the real one.
    early = {name for name in UNITS if settings(name, "DefaultDependencies") == ["no"]}
    assert [name for name in early if settings(name, "PrivateDevices")] == []


def test_units_for_the_first_boot_end_after_setup() -> None:
    first = {name: settings(name, "ConditionPathExists") for name in UNITS if "wizard" in name}
    assert [*first.values()] == [["!/etc/platform/setup-complete"]] * len(first) != []


@pytest.mark.parametrize("name", sorted(UNITS))
def test_leak_a_unit_describes_itself_and_has_no_secret_and_no_log_file(name: str) -> None:
    assert len(settings(name, "Description")) == 1
    assert f"`{name}`" in PAGE
    given = settings(name, "Environment") + settings(name, "EnvironmentFile")
    assert [one for one in given if re.search(r"KEY|TOKEN|SECRET|secrets\.env", one)] == []
    words = " ".join(settings(name, "ExecStart"))
    assert "secrets.env" not in words
    assert "--token" not in words
    # The journal is the log.
    assert set(settings(name, "StandardError")) <= {"journal"}


def test_a_unit_runs_our_programs_with_commands_that_exist() -> None:
    found = re.findall(
        r"^ExecStart=/usr/bin/([a-z-]+) ([a-z-]+)", "".join(UNITS.values()), re.MULTILINE
    )
    assert set(found) >= {("pwa-app", "serve"), ("platformctl", "control-helper")}
    assert {command for program, command in found if program == "platformctl"} <= set(main.modules)


def test_only_private_networks_reach_the_dashboard() -> None:
    assert settings("platform-pwa.socket", "IPAddressDeny") == ["any"]
    assert "0.0.0.0/0" not in " ".join(settings("platform-pwa.socket", "IPAddressAllow"))


def test_the_preset_enables_or_disables_every_unit() -> None:
    preset = (ROOT / "systemd/platform.preset").read_text("utf-8")
    said = {unit: verb for verb, unit in map(str.split, preset.splitlines())}
    with_install = {name for name, text in UNITS.items() if "[Install]" in text}
    assert set(said) == with_install
    assert [unit for unit, verb in said.items() if verb == "disable"] == ["platform-tunnel.service"]
