"""`make docs` builds the documents into a site, and a broken link is an error."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from dev.distributions import ROOT
from tests.support.running import run


def built(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Run Sphinx as the Makefile does."""
    options = ("-qanWT", "--keep-going", "-c", source / "docs", "-d", target / "doctrees")
    return run(sys.executable, "-m", "sphinx", *options, source, target / "site", merged=True)


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    finished = built(ROOT, tmp_path)
    assert (finished.returncode, finished.stdout) == (0, "")
    page = (tmp_path / "site/docs/architecture.html").read_text("utf-8")
    assert "platform_common.web" in page


def test_a_broken_link_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/conf.py", tmp_path / "docs")
    (tmp_path / "README.md").write_text("# Title\n\n[a](docs/nowhere.md) [b](#no-heading)\n")
    finished = built(tmp_path, tmp_path / "made")
    assert finished.returncode != 0
    assert "docs/nowhere.md" in finished.stdout
    assert "no-heading" in finished.stdout
