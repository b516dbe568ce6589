"""Options and parameter types that several commands use."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from platform_common.plain_text import printable
from release_tools.manifest.calver import CalVer, CalVerError

PATH = click.Path(path_type=Path)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
JOBS = click.option(
    "--jobs", type=click.IntRange(1, 256), help="Files to read in parallel. Default: one per core."
)


class Version(click.ParamType["CalVer"]):
    """An option value that is a version."""

    name = "version"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> CalVer:
        """Parse `value`; a usage error if it is not a version."""
        try:
            return CalVer.parse(value)
        except CalVerError as error:
            self.fail(f"{error.message}. {error.hint}", param, ctx)


def printable_path(path: Path) -> str:
    """Return `path` without characters that a terminal must not get."""
    return printable(str(path))


def progress_shown() -> bool:
    """Whether standard error is a terminal, which can show a progress bar."""
    # sys.stderr is None if the program was started with it closed.
    return sys.stderr is not None and sys.stderr.isatty()
