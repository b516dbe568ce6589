"""In CI a skipped test is a failure."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dev.distributions import ROOT
from tests.support.releases import clean_environment
from tests.support.running import run

# Joined here, so that a search for skipped tests does not find this one.
SKIPPED = "import pytest\n\ndef test_that_is_skipped():\n    pytest." + "skip('why not')\n"


@pytest.mark.parametrize(
    ("variables", "status", "manner"),
    [
        pytest.param({}, 0, (), id="one-by-one-at-home", marks=pytest.mark.long),
        pytest.param({"CI": "true"}, 1, (), id="one-by-one-in-CI", marks=pytest.mark.long),
        pytest.param({}, 0, ("-n", "1"), id="in-a-worker-at-home", marks=pytest.mark.long),
        pytest.param({"CI": "true"}, 1, ("-n", "1"), id="in-a-worker-in-CI"),
    ],
)
def test_a_skipped_test_fails_the_run(
    variables: dict[str, str], status: int, manner: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "test_one.py").write_text(SKIPPED)
    environment = clean_environment()
    environment.pop("CI", None)
    options = ("-p", "tests.conftest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", *manner)
    pytest_ = (sys.executable, "-m", "pytest", *options, str(tmp_path))
    finished = run(*pytest_, cwd=ROOT, env=environment | variables, merged=True)
    assert finished.returncode == status, finished.stdout
    assert "1 skipped" in finished.stdout
