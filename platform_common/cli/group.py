"""Shared by the command lines: errors as one sentence, JSON output, exit codes."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, NoReturn

import click

from platform_common.errors import AccessError, PlatformError, WrongUsageError
from platform_common.plain_text import printable
from platform_common.secret import keep_out_of_core_files

_AS_JSON = "platform_common.as_json"


class CommandGroup(click.Group):
    """Turns every known error into a sentence on stderr and an exit code.

    A program decides which code an error gets and, if its `--json` covers failures, what document
    describes one. Each command is the attribute `command` of one of its `modules`, which is
    imported when the command is called or listed.
    """

    usage_exit_code = 2
    modules: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of `modules`."""
        return [*self.modules, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command with that name."""
        if cmd_name not in self.modules:
            return super().get_command(ctx, cmd_name)
        command: click.Command = import_module(self.modules[cmd_name]).command
        return command

    def exit_code(self, error: PlatformError) -> int:
        """The exit code for `error`: that of wrong usage, or 1."""
        return self.usage_exit_code if isinstance(error, WrongUsageError) else 1

    def failure(self, exit_code: int, error: PlatformError) -> Any:
        """The JSON document for a failed call, or None."""
        return None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether JSON is wanted, then parse."""
        # Not in the option's callback, which is not reached if another option is wrong.
        ctx.meta[_AS_JSON] = "--json" in (args[: args.index("--")] if "--" in args else args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            return self._misused(ctx, error)
        except OSError as error:  # Printing help happens here.
            return self._broken(ctx, error)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn what it raises into a sentence and an exit code."""
        try:
            return super().invoke(ctx)
        except PlatformError as error:
            self._fail(ctx, error)
        except click.UsageError as error:
            self._misused(ctx, error)
        except OSError as error:
            self._broken(ctx, error)
        except (KeyboardInterrupt, click.Abort):
            click.secho("Interrupted; nothing half-done was left behind.", err=True)
            ctx.exit(130)

    def _misused(self, ctx: click.Context, error: click.UsageError) -> NoReturn:
        error.show()
        self._end(ctx, self.usage_exit_code, PlatformError(error.format_message()))

    def _broken(self, ctx: click.Context, error: OSError) -> NoReturn:
        # The reader of our output closed the pipe: click ends the program quietly.
        if error.errno == errno.EPIPE:
            raise error
        if error.filename is None:
            # Output that could not be written must not fail again when the program ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        self._fail(ctx, AccessError.of(error.filename or "reading or writing", error))

    def _fail(self, ctx: click.Context, error: PlatformError) -> NoReturn:
        print_error(error)
        self._end(ctx, self.exit_code(error), error)

    def _end(self, ctx: click.Context, exit_code: int, error: PlatformError) -> NoReturn:
        document = self.failure(exit_code, error)
        if ctx.meta[_AS_JSON] and document is not None:
            print_json(document)
        ctx.exit(exit_code)


def print_error(error: PlatformError, *, word: str = "error", colour: str = "red") -> None:
    """Print on stderr what went wrong, and what to do next."""
    said = click.style(f"{word}:", fg=colour, bold=True)
    click.echo(f"{said} {printable(error.message)}", err=True)
    if error.hint:
        click.echo(f"{click.style('hint:', fg='yellow')} {printable(error.hint)}", err=True)


def warn(error: PlatformError) -> None:
    """Print a warning on stderr."""
    print_error(error, word="warning", colour="yellow")


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(document, indent=2))


class Number(click.FloatRange):
    """An option value that is a number in a range, and not "nan", which every range accepts."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse `value`; a usage error if it is not a number in the range."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


def prepare(ctx: click.Context) -> None:
    """Prepare for any command: no core files, colour settings, SIGTERM as an ordinary exit."""
    keep_out_of_core_files()
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    signal.signal(signal.SIGTERM, _ended)


def run_and_leave(main: Callable[[], object]) -> NoReturn:
    """Run `main` and end the process with its exit status.

    The interpreter is not torn down object by object, which makes `platformctl version` miss
    its benchmark. `main` must have closed and removed its own files.
    Whatever `main` raises other than `SystemExit` is raised.
    """
    ended: SystemExit = SystemExit()
    try:
        main()
    except SystemExit as raised:
        ended = raised
    status = ended.code or 0
    try:
        # A stream that was closed before we started is None.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError:
        raise ended from None
    if not isinstance(status, int):
        raise ended
    os._exit(status)


class Text(click.ParamType[str]):
    """A text argument that is valid UTF-8, in any locale."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse text that is not valid UTF-8."""
        # Bytes that are not UTF-8 arrive as lone surrogates, which JSON cannot contain.
        if any("\ud800" <= c <= "\udfff" for c in value):
            self.fail(f"{value!a} is not UTF-8.", param, ctx)
        return value


def _ended(signal_number: int, frame: object) -> None:
    sys.exit(128 + signal_number)
