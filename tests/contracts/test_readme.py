"""The commands in the documents work."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from dev.distributions import ROOT, tracked_files
from tests.support.releases import clean_environment
from tests.support.running import printed, run

# Folders with generated files that are not tracked.
MADE = {"debian", "release"}
DOCUMENTS = [name for name in tracked_files() if name.endswith(".md")]
# A block in bash is run as it is; one in console shows commands and their output; the others are
# not commands.
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDERS = {name.partition("/")[0] for name in tracked_files() if "/" in name} - MADE
LANGUAGES = {"bash", "console", "text", "json", "toml", "ini", "python", "nginx", "mermaid"}


def blocks(name: str, language: str) -> list[str]:
    """The fenced blocks of `language` in the document `name`."""
    text = (ROOT / name).read_text("utf-8")
    return [body for found, body in FENCE.findall(text) if found == language]


@pytest.fixture(scope="module")
def after_make_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like a checkout after `make run`."""
    folder = tmp_path_factory.mktemp("checkout")
    environment = Path(sys.executable).parent.parent
    (folder / ".venv").symlink_to(environment)
    command = (sys.executable, ROOT / "dev/run.py", "--once", "--folder", folder / "dev-out")
    printed(*command, cwd=folder, env=clean_environment())
    return folder


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in DOCUMENTS if blocks(name, "bash")])
def test_the_commands_of_a_document_run_in_order(
    name: str, after_make_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "checkout"
    shutil.copytree(after_make_run, folder, symlinks=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # -e stops at the first failure, except of a command that is meant to fail: `! command`.
    script = "".join(
        re.sub(r"^! (.*)", r"if \1; then exit 99; fi", body, flags=re.MULTILINE)
        for body in blocks(name, "bash")
    )
    environment = clean_environment() | {"PATH": path}
    shell = ("bash", "-euxo", "pipefail", "-c", script)
    finished = run(*shell, cwd=folder, env=environment, merged=True)
    assert finished.returncode == 0, finished.stdout


def test_the_readme_has_commands_to_run() -> None:
    assert sum(body.count("release-tools ") for body in blocks("README.md", "bash")) >= 3


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_names_languages_verbs_of_make_and_files_that_exist(name: str) -> None:
    text, folder = (ROOT / name).read_text("utf-8"), (ROOT / name).parent
    assert {language for language, _ in FENCE.findall(text)} <= LANGUAGES
    assert text.count("\n```") % 2 == 0
    code = [*re.findall(r"`([^`\n]+)`", text), *(body for _, body in FENCE.findall(text))]
    named = {verb for part in code for verb in re.findall(r"\bmake ([a-z-]+)", part)}
    verbs = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert named <= set(verbs)
    links = re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text))
    files = [link.partition("#")[0] for link in links if not re.match(r"[a-z]+:|#", link)]
    assert [file for file in files if not (folder / file).exists()] == []


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name != "CHANGELOG.md"])
def test_a_file_of_the_checkout_that_a_document_names_exists(name: str) -> None:
    code = re.findall(r"`([\w.*/<>@-]+)`", FENCE.sub("", (ROOT / name).read_text("utf-8")))
    # `<profile>` stands for any profile. Paths outside our folders are on a device.
    paths = [re.sub(r"<[a-z-]+>", "*", path) for path in code if path.split("/")[0] in FOLDERS]
    assert [path for path in paths if not any(ROOT.glob(path.rstrip("/")))] == []


def test_the_verbs_that_make_lists_are_those_of_the_makefile() -> None:
    environment = {"PATH": os.environ["PATH"]}
    listed = printed("make", "--no-print-directory", "help", cwd=ROOT, env=environment)
    verbs = re.findall(r"^  make ([a-z]+) +\S", listed, re.MULTILINE)
    said = "help run wizard test bench docs release deb lint format lock messages clean"
    assert verbs == said.split()


def test_the_list_of_documents_is_complete() -> None:
    listed = re.findall(r"\]\(([^)#\s]+\.md)\)", (ROOT / "docs/README.md").read_text("utf-8"))
    found = {name.removeprefix("docs/") for name in DOCUMENTS if name.startswith("docs/")}
    assert sorted(listed) == sorted(found - {"README.md"})


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_test_that_a_document_names_exists(name: str) -> None:
    assert set(re.findall(r"`(test_\w+)`", (ROOT / name).read_text("utf-8"))) <= _names_of_tests()


@functools.cache
def _names_of_tests() -> set[str]:
    """The names of all tests."""
    texts = ((ROOT / path).read_text("utf-8") for path in tracked_files() if "/test_" in path)
    return {test for text in texts for test in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
