"""What `make` reports and installs when Debian packages are missing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from dev import packages
from dev.distributions import ROOT
from tests.support.running import run


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs of a machine without packages; no other folder is searched."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(packages, "_MORE_FOLDERS", ())
    return folder


def put_program(folder: Path, name: str, body: str = "exit 0") -> None:
    """Create a program that runs `body`, which uses shell builtins only."""
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def put_all(folder: Path, *, but: str) -> None:
    for sign in packages.SIGNS.values():
        if sign != but and not sign.startswith(("/", "module:")):
            put_program(folder, sign)


# The verbs that this machine can run, as it can run `make test`; others fetch what they need.
HERE = [verb for verb, needs in packages.NEEDS.items() if {*needs} <= {*packages.NEEDS["test"]}]


@pytest.mark.parametrize("verb", HERE)
def test_this_machine_lacks_no_package(verb: str) -> None:
    finished = run(sys.executable, ROOT / "dev/packages.py", verb, merged=True)
    assert (finished.returncode, finished.stdout) == (0, "")


def test_a_user_is_shown_one_command_that_installs_missing_packages(
    bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_all(bare, but="minisign")
    (bare / "nginx").unlink()
    assert packages.main(["test"], root=False) == 1
    seen = capsys.readouterr()
    assert re.findall(r"^  (.*)$", seen.err, re.MULTILINE) == [
        "sudo apt-get update && sudo apt-get install --no-install-recommends minisign nginx-light"
    ]
    assert seen.out == ""


def test_root_installs_missing_packages(bare: Path) -> None:
    put_all(bare, but="qemu-img")
    log = bare.parent / "log"
    put_program(bare, "apt-get", f'echo "$DEBIAN_FRONTEND $*" >>{log}')
    assert packages.main(["run"], root=True) == 0
    assert log.read_text().splitlines() == [
        "noninteractive update -qq",
        "noninteractive install -qq --yes --no-install-recommends qemu-utils",
    ]


def test_nothing_is_installed_if_nothing_is_missing(bare: Path) -> None:
    put_all(bare, but="")
    put_program(bare, "apt-get", "exit 9")
    assert packages.main(["test"], root=True) == 0


@pytest.mark.parametrize("there", [True, False], ids=["apt-get-fails", "no-apt-get"])
def test_a_failed_installation_names_the_packages(
    there: bool, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_all(bare, but="xz")
    if there:
        put_program(bare, "apt-get", "exit 100")
    assert packages.main(["run"], root=True) == 1
    assert "xz-utils" in capsys.readouterr().err


def test_a_program_outside_the_path_of_a_user_is_found(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_all(bare, but="mkfs.ext4")
    assert packages.missing(packages.NEEDS["run"]) == ["e2fsprogs"]
    (tmp_path / "sbin").mkdir()
    put_program(tmp_path / "sbin", "mkfs.ext4")
    monkeypatch.setattr(packages, "_MORE_FOLDERS", (str(tmp_path / "sbin"),))
    assert packages.missing(packages.NEEDS["run"]) == []


def test_a_python_that_is_too_old_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2, "final", 0))
    assert packages.main(["test"], root=False) == 1
    assert "This is Python 3.9, and 3.11 is the oldest" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["deploy"], ["run", "test"]], ids=str)
def test_an_unknown_verb_is_refused(arguments: list[str]) -> None:
    assert packages.main(arguments, root=False) == 2


def test_every_package_has_a_sign() -> None:
    assert {package for needs in packages.NEEDS.values() for package in needs} == set(
        packages.SIGNS
    )
