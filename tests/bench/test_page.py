"""`make bench` writes its results into a page."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from bench.measuring import Row
from bench.page import with_tables
from dev.distributions import ROOT
from tests.support.running import run

PAGE = "before\n<!-- a: begin -->\nold\n<!-- a: end -->\n<!-- b: begin -->\nkept\n<!-- b: end -->\n"


def test_a_table_is_replaced_and_the_rest_of_the_page_is_kept() -> None:
    rows = [Row("fast", 0.2, "x", 0.3, "1 s | 2 s"), Row("peak", 90, "MiB", 80, "")]
    page = with_tables(PAGE, {"a": rows}, "A machine")
    assert "old" not in page
    assert page.startswith("before\n<!-- a: begin -->\n\nA machine:\n")
    assert "| fast | ≤ 0.3 | 0.2 | 1 s / 2 s |\n" in page
    assert "| peak | ≤ 80 MiB | 90 MiB, **missed** |  |\n" in page
    assert page.endswith("<!-- b: begin -->\nkept\n<!-- b: end -->\n")


def test_a_program_without_a_table_on_the_page_is_an_error() -> None:
    with pytest.raises(SystemExit):
        with_tables(PAGE, {"c": []}, "A machine")


def test_the_page_of_the_project_has_a_table_for_every_measured_program(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    shutil.copy(ROOT / "docs/benchmarks.md", page)
    command = (sys.executable, "-m", "bench.run", "--quick", "--page", page)
    finished = run(*command, cwd=ROOT, merged=True)
    assert "parse, validate and check 10,000 artefacts" in finished.stdout
    assert "| the same, against a tenth of them | ≤ 13 |" in page.read_text("utf-8")
    for program in ("platformctl", "pwa-app", "release-tools", "wizard-app", "services"):
        assert with_tables(page.read_text("utf-8"), {program: []}, "") != ""
