"""Every command tells what it does, what its options mean, and how it is called."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from release_tools.cli import main

COMMANDS = sorted(main.commands)
OPTIONS = [
    pytest.param(option, id=f"{name}{option.opts[-1]}")
    for name in COMMANDS
    for option in main.commands[name].params
    if isinstance(option, click.Option)
]


def examples(command: click.Command) -> list[list[str]]:
    """The commands in the epilog, as lists of words, without their variables."""
    lines = re.sub(r"\\\n\s*", "", command.epilog or "").splitlines()
    calls = [shlex.split(line) for line in lines if " release-tools " in f" {line}"]
    return [call[call.index("release-tools") :] for call in calls]


EXAMPLES = [
    pytest.param(name, call, id=shlex.join(call))
    for name in COMMANDS
    for call in examples(main.commands[name])
]


def help_of(*arguments: str) -> str:
    finished = CliRunner().invoke(main, [*arguments, "--help"])
    assert finished.exit_code == 0
    return finished.output


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_does(name: str) -> None:
    summary = (main.commands[name].help or "").splitlines()[0]
    assert re.fullmatch(r"[A-Z].+\.", summary)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_an_example(name: str) -> None:
    assert re.search(r"\n  Examples?:\n    \S", help_of(name))
    assert examples(main.commands[name])


@pytest.mark.parametrize(("name", "call"), EXAMPLES)
def test_an_example_is_a_call_that_the_command_takes(name: str, call: list[str]) -> None:
    assert call[:2] == ["release-tools", name]
    with main.commands[name].make_context(name, call[2:]) as context:
        assert context.params


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_says_what_it_means(option: click.Option) -> None:
    assert re.fullmatch(r"[A-Z].+\.", option.help or "", re.DOTALL)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_output_for_programs(name: str) -> None:
    assert "--json" in help_of(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal(name: str) -> None:
    assert [line for line in help_of(name).splitlines() if len(line) > 80] == []


def test_the_program_lists_its_commands_with_their_summaries() -> None:
    commands = help_of().partition("\nCommands:\n")[2]
    listed = re.findall(r"^  ([a-z-]+)  +[A-Z].*[^.]\.$", commands, re.MULTILINE)
    assert sorted(listed) == COMMANDS


def test_the_program_lists_its_exit_codes() -> None:
    codes = re.findall(r"^ +([0-9]+)  \S", help_of().partition("Exit codes")[2], re.MULTILINE)
    assert codes[:6] == ["0", "1", "2", "3", "4", "5"]


def test_minus_h_is_help() -> None:
    assert CliRunner().invoke(main, ["-h"]).output == help_of()
