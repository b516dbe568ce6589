"""Every command says what it does, what its options mean and how to call it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

import platformctl.cli
import pwa_app.cli
import release_tools.cli
import wizard_app.cli

PROGRAMS: dict[str, click.Group] = {
    "platformctl": platformctl.cli.main,
    "pwa-app": pwa_app.cli.main,
    "release-tools": release_tools.cli.main,
    "wizard-app": wizard_app.cli.main,
}
EXIT_CODES = {
    "platformctl": ["0", "1", "64"],
    "pwa-app": ["0", "1", "2"],
    "release-tools": ["0", "1", "2", "3", "4", "5"],
    "wizard-app": ["0", "1", "2"],
}
# Commands that act, and report the result by their exit code.
WITHOUT_JSON = {
    "platformctl cost set",
    "platformctl cost reset",
    "platformctl setup again",
    "platformctl setup apply",
    "platformctl voice enable",
    "platformctl voice disable",
    "platformctl voice set-wake-word",
    "pwa-app serve",
    "wizard-app console",
    "wizard-app serve",
}


@dataclass(frozen=True)
class Call:
    """A command of a program, or the program itself."""

    words: tuple[str, ...]
    command: click.Command

    def __str__(self) -> str:
        return " ".join(self.words)

    @property
    def help(self) -> str:
        """The output of `--help`."""
        program, *names = self.words
        finished = CliRunner().invoke(PROGRAMS[program], [*names, "--help"], prog_name=program)
        assert finished.exit_code == 0
        return finished.output


def calls(words: tuple[str, ...], command: click.Command) -> Iterator[Call]:
    """The command and all commands below it."""
    yield Call(words, command)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            # Hidden commands are for our own programs only.
            if not below.hidden:
                yield from calls((*words, name), below)


ALL = [call for name, main in PROGRAMS.items() for call in calls((name,), main)]
COMMANDS = [call for call in ALL if len(call.words) > 1]
# A group that does nothing by itself only leads to its commands.
RUNNABLE = [
    call
    for call in COMMANDS
    if not isinstance(call.command, click.Group) or call.command.invoke_without_command
]
OPTIONS = [
    pytest.param(option, id=f"{call}{option.opts[-1]}")
    for call in COMMANDS
    for option in call.command.params
    if isinstance(option, click.Option)
]


def examples(call: Call) -> list[list[str]]:
    """The calls in the epilog as lists of words, without variables and pipes into them."""
    program = call.words[0]
    lines = re.sub(r"\\\n\s*", "", call.command.epilog or "").splitlines()
    found = [shlex.split(line) for line in lines if f" {program} " in f" {line}"]
    return [words[words.index(program) :] for words in found]


EXAMPLES = [
    pytest.param(call, example, id=shlex.join(example))
    for call in RUNNABLE
    for example in examples(call)
]


@pytest.mark.parametrize("call", COMMANDS, ids=str)
def test_a_command_says_what_it_does_and_shows_an_example(call: Call) -> None:
    assert re.match(r"[A-Z].+\.(\n|$)", call.command.help or "")
    if call in RUNNABLE:
        assert re.search(r"\n  Examples?:\n    \S", call.help)
        assert examples(call)
        # Every command that prints an answer also prints it for programs.
        assert ("--json" in call.help) == (str(call) not in WITHOUT_JSON)


@pytest.mark.parametrize(("call", "example"), EXAMPLES)
def test_the_command_accepts_its_examples(call: Call, example: list[str]) -> None:
    assert tuple(example[: len(call.words)]) == call.words
    arguments = example[len(call.words) :]
    below = dict(getattr(call.command, "commands", {}))
    if arguments and arguments[0] in below:
        command, arguments = below[arguments[0]], arguments[1:]
    else:
        command = call.command
    with command.make_context(example[0], arguments) as context:
        assert context.command is command


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_says_what_it_means(option: click.Option) -> None:
    assert re.fullmatch(r"[A-Z].+\.", option.help or "", re.DOTALL)


@pytest.mark.parametrize("call", ALL, ids=str)
def test_help_fits_a_terminal(call: Call) -> None:
    assert [line for line in call.help.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    "call", [call for call in ALL if isinstance(call.command, click.Group)], ids=str
)
def test_a_group_lists_its_commands_with_their_summaries(call: Call) -> None:
    listed = re.findall(
        r"^  ([a-z-]+)  +[A-Z].*[^.]\.$",
        call.help.partition("\nCommands:\n")[2],
        re.MULTILINE,
    )
    below = [other for other in COMMANDS if other.words[:-1] == call.words]
    assert sorted(listed) == sorted(other.words[-1] for other in below)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_lists_its_exit_codes_and_accepts_minus_h(program: str) -> None:
    whole = Call((program,), PROGRAMS[program])
    codes = re.findall(r"^ +([0-9]+)  +\S", whole.help.partition("Exit codes")[2], re.MULTILINE)
    assert codes[: len(EXIT_CODES[program])] == EXIT_CODES[program]
    assert CliRunner().invoke(whole.command, ["-h"], prog_name=program).output == whole.help
