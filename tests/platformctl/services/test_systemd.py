"""Asking systemd for states, and handling invalid answers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from platform_common.errors import PlatformError
from platformctl.services.systemd import UnitState, parse, switch, unit_states
from tests.support.stand_in import stand_in

BLOCK = (
    "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
    "ActiveEnterTimestampMonotonic=5000000"
)


@pytest.fixture
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for systemctl where no systemd runs; the tests write it."""
    monkeypatch.setenv("PATH", stand_in(tmp_path / "bin", "systemctl", "")["PATH"])
    return tmp_path / "bin/systemctl"


def write(program: Path, script: str) -> None:
    stand_in(program.parent, program.name, script)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("", ""), UnitState("active", "loaded", enabled=True, uptime_seconds=95)),
        (("=enabled", "=enabled-runtime"), UnitState("active", "loaded", True, 95)),
        (("=enabled", "=disabled"), UnitState("active", "loaded", False, 95)),
        (("=enabled", "=static"), UnitState("active", "loaded", False, 95)),
        (("=active", "=reloading"), UnitState("reloading", "loaded", True, 95)),
        (("=active", "=failed"), UnitState("failed", "loaded", True, None)),
        (("=active", "=activating"), UnitState("activating", "loaded", True, None)),
        (("5000000", "0"), UnitState("active", "loaded", True, None)),
        (("5000000", "200000000"), UnitState("active", "loaded", True, None)),
        (("5000000", "-1"), UnitState("active", "loaded", True, None)),
        (("5000000", "9" * 10_000), UnitState("active", "loaded", True, None)),
        (("5000000", "soon"), UnitState("active", "loaded", True, None)),
        (("ActiveState=active", ""), UnitState()),
        (("LoadState=loaded", "LoadState="), UnitState()),
        ((BLOCK, "nonsense"), UnitState()),
    ],
    ids=lambda value: ">".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_block_of_the_answer_is_a_state(change: tuple[str, str], expected: UnitState) -> None:
    assert parse(BLOCK.replace(*change), now_s=100.0) == expected


def test_all_units_are_queried_in_one_call(systemctl: Path, tmp_path: Path) -> None:
    write(systemctl, f'echo "$@" >>{tmp_path}/asked; printf "{BLOCK}\\n\\n{BLOCK}\\n"')
    states = unit_states(["a.service", "b.service"])
    found = {unit: state.active_state for unit, state in states.items()}
    assert found == {"a.service": "active", "b.service": "active"}
    (asked,) = (tmp_path / "asked").read_text().splitlines()
    assert asked.endswith(" -- a.service b.service")


def test_without_a_valid_answer_a_unit_is_unavailable(
    systemctl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for script in (
        "echo 'System has not been booted with systemd' >&2; exit 1",
        *("exit 0", "echo nonsense", "yes", "kill -9 $$"),
        f"printf '{BLOCK}\n\n{BLOCK}\n'",
        f"printf '{BLOCK}\n'; exit 4",
        "printf 'ActiveState=\377\n'",
    ):
        write(systemctl, script)
        assert unit_states(["a.service"]) == {"a.service": UnitState()}, script
    systemctl.unlink()
    monkeypatch.setenv("PATH", str(systemctl.parent))
    assert unit_states(["a.service"]) == {"a.service": UnitState()}


def test_cli_01_a_hanging_systemctl_does_not_delay_the_caller(systemctl: Path) -> None:
    write(systemctl, "sleep 60")
    begun = time.monotonic()
    assert unit_states(["a.service"]) == {"a.service": UnitState()}
    assert time.monotonic() - begun < 30


def test_cli_09_an_invalid_unit_name_is_not_queried(systemctl: Path, tmp_path: Path) -> None:
    write(systemctl, f'echo "$@" >>{tmp_path}/asked; printf "{BLOCK}\n"')
    for unit in ("*", "-H evil", "--help", "", "a b", "a\nb", "x" * 300, "$(id)"):
        assert unit_states([unit]) == {unit: UnitState()}
    assert unit_states([]) == {}
    assert not (tmp_path / "asked").exists()


def test_a_unit_is_enabled_or_disabled_at_once_and_for_every_boot(
    systemctl: Path, tmp_path: Path
) -> None:
    write(systemctl, f'echo "$@" >{tmp_path}/asked')
    for on, verb in ((True, "enable"), (False, "disable")):
        switch("a.service", on=on)
        assert (tmp_path / "asked").read_text() == f"{verb} --now -- a.service\n"


def test_a_failure_to_enable_a_unit_is_reported_in_systemds_words(systemctl: Path) -> None:
    write(systemctl, "echo one >&2; echo 'Failed to enable unit: Unit file missing.' >&2; exit 1")
    with pytest.raises(
        PlatformError, match=r"not enable a\.service: Failed to enable unit: Unit f"
    ):
        switch("a.service", on=True)
