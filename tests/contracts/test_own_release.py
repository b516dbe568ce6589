"""This project's own release, built by its own tools."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from dev import release
from dev.distributions import ROOT
from tests.support.releases import KeyPair, Tools, clean_environment
from tests.support.running import printed, run

VERSION = "2026.11.1-rc1"
NAMES = [f"platform-appliance-{kind}-{VERSION}-dev.tar.gz" for kind in ("sdist", "wheel")]


@pytest.fixture(scope="module")
def own_release(tmp_path_factory: pytest.TempPathFactory, key_pair: KeyPair) -> Path:
    output = tmp_path_factory.mktemp("own") / "dist"
    release.make_release(output, VERSION, "dev", {"SIGNING_SECRET_KEY": str(key_pair.secret)})
    return output


@pytest.mark.long
def test_release_tools_and_the_minisign_program_trust_it(
    own_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    verified = tools("verify", own_release, "--public-key", key_pair.public)
    assert verified.returncode == 0, verified.stdout
    assert f"TRUSTED: release {VERSION} (dev), 2 of 2 artefacts read" in verified.stdout
    for name in ("manifest.json", *(f"{VERSION}/{name}" for name in NAMES)):
        file = own_release / "dev" / name
        printed("minisign", "-V", "-H", "-q", "-p", key_pair.public, "-m", file)


@pytest.mark.long
def test_the_release_contains_the_sdist_and_the_wheel(own_release: Path) -> None:
    folder = own_release / "dev" / VERSION
    with tarfile.open(folder / NAMES[0]) as sdist:
        assert any(name.endswith("/release_tools/cli.py") for name in sdist.getnames())
    with tarfile.open(folder / NAMES[1]) as packed:
        (member,) = packed.getmembers()
        wheel = packed.extractfile(member)
        assert wheel is not None
        assert "release_tools/cli.py" in zipfile.ZipFile(io.BytesIO(wheel.read())).namelist()


@pytest.mark.long
def test_pub_05_the_same_sources_give_the_same_release(
    own_release: Path, tmp_path: Path, key_pair: KeyPair
) -> None:
    release.make_release(tmp_path, VERSION, "dev", {"SIGNING_SECRET_KEY": str(key_pair.secret)})
    files = files_of(own_release)
    assert (len(files), files_of(tmp_path)) == (6, files)


def files_of(folder: Path) -> dict[str, bytes]:
    """The content of every file below."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.long
def test_the_command_makes_and_verifies_a_release_of_a_commit(
    tmp_path: Path, key_pair: KeyPair
) -> None:
    keys = {"SIGNING_SECRET_KEY": str(key_pair.secret), "PUBLIC_KEY": str(key_pair.public)}
    command = (sys.executable, "-m", "dev.release", "--output", tmp_path, "--version", VERSION)
    finished = run(*command, cwd=ROOT, env=clean_environment() | keys, merged=True)
    assert finished.returncode == 0, finished.stdout
    assert f"\nTRUSTED: release {VERSION} (dev), 2 of 2 artefacts read" in finished.stdout


def test_signing_with_a_release_key_requires_its_public_key(tmp_path: Path) -> None:
    refused = CliRunner().invoke(
        release.main,
        ["--output", str(tmp_path / "dist")],
        env={"SIGNING_SECRET_KEY": "release.key"},
    )
    assert refused.exit_code == 2
    assert "give --public-key" in refused.output
    assert list(tmp_path.iterdir()) == []


def test_the_development_key_is_created_once(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in release.development_key(tmp_path / "keys")]
    assert [path.read_bytes() for path in release.development_key(tmp_path / "keys")] == first
