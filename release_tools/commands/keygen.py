"""`release-tools keygen`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from platform_common.cli.group import print_json
from release_tools.commands.options import AS_JSON, PATH, printable_path
from release_tools.commands.signing_inputs import ask_password
from release_tools.signing.keys import PASSWORD_VARIABLE, generate
from release_tools.signing.minisign import show_key_id


@click.command(
    epilog="""\b
Example:
  release-tools keygen --secret-key release.key --public-key release.pub
"""
)
@click.option("--secret-key", required=True, type=PATH, help="The secret key file to write.")
@click.option("--public-key", required=True, type=PATH, help="The public key file to write.")
@click.option("--no-password", is_flag=True, help="Do not encrypt the secret key.")
@AS_JSON
def command(secret_key: Path, public_key: Path, no_password: bool, as_json: bool) -> None:
    """Create a minisign key pair.

    The secret key file gets mode 0600; existing files are never overwritten. The
    password is taken from SIGNING_SECRET_KEY_PASSWORD, or asked for on a terminal.
    """
    password = os.environ.pop(PASSWORD_VARIABLE, "")
    if no_password:
        password = ""
    elif not password:
        password = ask_password(confirm=True)
    made = generate(secret_key, public_key, password)
    if as_json:
        files = {"secret_key": str(secret_key), "public_key": str(public_key)}
        print_json({"ok": True, "key_id": show_key_id(made.key_id), **files})
        return
    paths = f"secret key {printable_path(secret_key)}, public key {printable_path(public_key)}"
    click.echo(f"Key {show_key_id(made.key_id)}: {paths}.")
    click.echo("Keep the secret key off every machine that serves releases.")
