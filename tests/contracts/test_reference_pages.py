"""The reference pages match the programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest
from jsonschema import Draft202012Validator

from platformctl.checks.doctor import CHECKS
from release_tools.manifest.document import render
from release_tools.manifest.parser import parse
from tests.contracts.test_cli_help import COMMANDS, EXIT_CODES, RUNNABLE, Call

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    program: (ROOT / f"docs/reference/{program}.md").read_text("utf-8") for program in EXIT_CODES
}
FORMAT_PAGE = (ROOT / "docs/reference/manifest.md").read_text("utf-8")
JSON_BLOCK = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(program, block, id=f"{program}-{number}")
    for program, page in PAGES.items()
    for number, block in enumerate(JSON_BLOCK.findall(page))
]


def section(call: Call) -> str:
    """The section of the page about the command, or about its group."""
    program, name, *_ = call.words
    return PAGES[program].partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def test_every_finding_has_a_row_and_every_row_a_finding() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "release_tools").rglob("*.py"))
    rows = re.findall(r"^\| `(E_[A-Z_]+)` \|", PAGES["release-tools"], re.MULTILINE)
    assert sorted(rows) == sorted(set(re.findall(r'"(E_[A-Z_]+)"', sources)))


@pytest.mark.parametrize("call", COMMANDS, ids=str)
def test_a_command_has_a_section_with_every_option(call: Call) -> None:
    options = {
        spelling
        for parameter in call.command.params
        if isinstance(parameter, click.Option)
        for spelling in parameter.opts
    }
    # The options that every command has are described once, above all sections.
    options -= {"--json"} if call.words[0] == "platformctl" else set()
    said = section(call)
    assert said.strip()
    assert call not in RUNNABLE or len(call.words) == 2 or " ".join(call.words[1:]) in said
    assert {option for option in options if option not in said} == set()


def test_the_example_manifest_is_valid_and_formatted_as_the_program_writes_it() -> None:
    (example,) = JSON_BLOCK.findall(FORMAT_PAGE)
    assert render(parse(example.encode())).decode() == example


def test_every_exit_code_of_the_help_is_on_the_page() -> None:
    for program, page in PAGES.items():
        assert [code for code in EXIT_CODES[program] if f"| {code} |" not in page] == []


def test_every_check_of_doctor_has_a_row_and_every_row_a_check() -> None:
    rows = re.findall(
        r"^\| `([a-z0-9-]+)` \|", PAGES["platformctl"].partition("## doctor")[2], re.MULTILINE
    )
    assert rows[: len(CHECKS)] == list(CHECKS)


@pytest.mark.parametrize(("program", "block"), BLOCKS)
def test_an_example_document_is_json_and_an_example_answer_matches_a_schema(
    program: str, block: str
) -> None:
    document = json.loads(block)
    assert isinstance(document, dict | list)
    schemas = [json.loads(path.read_bytes()) for path in (ROOT / "schemas/control").glob("*.json")]
    assert program != "platformctl" or any(
        Draft202012Validator(schema).is_valid(document) for schema in schemas
    )
