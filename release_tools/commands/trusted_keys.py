"""The option `--public-key` of the commands that verify."""

from __future__ import annotations

import click

from release_tools.signing.keys import load_public_key, writable_by_others
from release_tools.signing.minisign import PublicKey

PUBLIC_KEYS = click.option(
    "-p",
    "--public-key",
    "public_keys",
    required=True,
    multiple=True,
    metavar="P",
    help="A trusted minisign public key: its file or its base64 line. May be repeated.",
)


def load_keys(texts: tuple[str, ...]) -> list[PublicKey]:
    """Load trusted keys from files or base64 lines; warn about files that others can change."""
    for text in texts:
        if writable_by_others(text):
            click.secho(
                f"warning: other users can change the public key file {text}", fg="yellow", err=True
            )
    return [load_public_key(text) for text in texts]
