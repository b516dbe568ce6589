"""The program `release-tools`: its commands and exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import click

from platform_common.cli.group import CommandGroup, prepare, run_and_leave
from platform_common.errors import AccessError, PlatformError, WrongUsageError
from platform_common.version import VERSION
from release_tools.manifest.calver import CalVerError
from release_tools.manifest.document import ManifestError, SchemaVersionError


class _Group(CommandGroup):
    modules: ClassVar[Mapping[str, str]] = {
        "keygen": "release_tools.commands.keygen",
        "build": "release_tools.commands.build",
        "sign": "release_tools.commands.sign",
        "verify": "release_tools.commands.verify",
        "verify-file": "release_tools.commands.verify_file",
        "inspect": "release_tools.commands.inspect",
        "compare": "release_tools.commands.compare",
    }

    def exit_code(self, error: PlatformError) -> int:
        if isinstance(error, SchemaVersionError):
            return 4
        if isinstance(error, ManifestError | CalVerError):
            return 3
        if isinstance(error, AccessError):
            return 5
        return 2 if isinstance(error, WrongUsageError) else 1

    def failure(self, exit_code: int, error: PlatformError) -> dict[str, Any]:
        document: dict[str, Any] = {"message": error.message, "hint": error.hint}
        problems = getattr(error, "problems", None)
        if problems is not None:
            document["problems"] = list(problems)
        return {"ok": False, "exit_code": exit_code, "error": document}


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="release-tools")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Build, sign, verify and read signed releases.

    A release is a manifest, the artefacts that it lists, and a minisign
    signature beside each of them.

    \b
    Exit codes:
      0  success
      1  a check failed: signature, hash, size, set of files, rollback, stale
      2  wrong usage
      3  the manifest is not valid
      4  the manifest is of another schema version: upgrade the control CLI
      5  something could not be read or reached
    """  # noqa: D301 - \b keeps the lines apart, for click
    prepare(ctx)


def program() -> None:
    """Run the program `release-tools`."""
    # Leaves at once: an orderly exit misses "release-tools --version, against import click".
    run_and_leave(main)
