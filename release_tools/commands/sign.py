"""`release-tools sign`."""

from __future__ import annotations

from pathlib import Path

import click

from platform_common.cli.group import print_json
from release_tools.building.sign import sign_paths
from release_tools.commands.options import AS_JSON, PATH, printable_path, progress_shown
from release_tools.commands.signing_inputs import signing_key, timestamp
from release_tools.progress import byte_progress
from release_tools.signing.keys import SECRET_KEY_VARIABLE


@click.command(
    epilog="""\b
Examples:
  SIGNING_SECRET_KEY=~/keys/release.key release-tools sign notes.txt
  SIGNING_SECRET_KEY=~/keys/release.key \\
    release-tools sign dist/stable/manifest.json.unsigned
"""
)
@click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
@AS_JSON
def command(paths: tuple[Path, ...], as_json: bool) -> None:
    """Sign files with SIGNING_SECRET_KEY.

    Each file gets a detached signature PATH.minisig. For a manifest.json.unsigned,
    its artefacts are checked and signed, and it becomes the signed manifest.json.
    """
    key = signing_key()
    if key is None:
        raise click.UsageError(
            f"{SECRET_KEY_VARIABLE} is not set, so there is no key to sign with."
        )
    with byte_progress("Signing", shown=progress_shown()) as start:
        written = sign_paths(list(dict.fromkeys(paths)), key, timestamp(), start)
    if as_json:
        print_json({"ok": True, "signatures": [str(path) for path in written]})
        return
    for path in written:
        click.echo(printable_path(path))
