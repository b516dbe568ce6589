"""What the options of several commands take."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import click

from platform_common.plain_text import printable
from release_tools.manifest.calver import CalVer, CalVerError

PATH = click.Path(path_type=Path)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")


class Version(click.ParamType["CalVer"]):
    """A version as it is parsed."""

    name = "version"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> CalVer:
        """Refuse what is no version."""
        try:
            return CalVer.parse(value)
        except CalVerError as error:
            self.fail(f"{error.message}. {error.hint}", param, ctx)


class Seconds(click.FloatRange):
    """A time in seconds."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse what is no number."""
        seconds: float = super().convert(value, param, ctx)
        # Not a number is inside every range.
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return seconds


def shown(path: Path) -> str:
    """`path` as a terminal may show it."""
    return printable(str(path))


def progress_shown() -> bool:
    """Whether somebody sees a progress bar."""
    # A program that was started without one has none.
    return sys.stderr is not None and sys.stderr.isatty()
