"""The reference pages say what the programs do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from release_tools.cli import main
from release_tools.manifest import parse, render

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/release-tools.md").read_text("utf-8")
FORMAT_PAGE = (ROOT / "docs/manifest.md").read_text("utf-8")
JSON_BLOCK = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def section(command: str) -> str:
    """What the page says of that command."""
    return PAGE.partition(f"\n## {command}\n")[2].partition("\n## ")[0]


def test_every_finding_has_a_row_and_every_row_a_finding() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "release_tools").glob("*.py"))
    rows = re.findall(r"^\| `(E_[A-Z_]+)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(set(re.findall(r'"(E_[A-Z_]+)"', sources)))


@pytest.mark.parametrize("name", main.commands)
def test_a_command_has_a_section_with_every_option(name: str) -> None:
    options = {
        spelling
        for parameter in main.commands[name].params
        if isinstance(parameter, click.Option)
        for spelling in parameter.opts
    }
    said = section(name)
    assert {option for option in options if f"{option}" not in said} == set()


@pytest.mark.parametrize("block", JSON_BLOCK.findall(PAGE), ids=lambda block: block[:20].strip())
def test_an_example_document_is_json(block: str) -> None:
    assert isinstance(json.loads(block), dict)


def test_the_example_manifest_is_valid_and_as_the_program_would_write_it() -> None:
    (example,) = JSON_BLOCK.findall(FORMAT_PAGE)
    assert render(parse(example.encode())).decode() == example


def test_every_exit_code_of_the_help_is_on_the_page_and_in_the_readme() -> None:
    codes = re.findall(r"^ +([0-9]) ", main.help or "", re.MULTILINE)
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(codes) == 6
    assert all(f"| {code} |" in page for code in codes for page in (PAGE, readme))
