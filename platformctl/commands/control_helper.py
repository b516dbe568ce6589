"""`platformctl control-helper`, which systemd starts for each connection to its socket."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

import click

from platform_common.errors import WrongUsageError
from platform_common.paths import Paths
from platform_common.plain_text import printable
from platformctl.root_helper.operations import find_operation
from platformctl.root_helper.server import serve


@click.command(hidden=True, epilog="\b\nExample:\n  platformctl control-helper --user platform")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default="/",
    help="Folder of the device.",
)
@click.option("--user", default="platform", help="User who may send requests, besides root.")
def command(root: Path, user: str) -> None:
    """Answer one request of an unprivileged program on standard input.

    The caller's environment is ignored. Standard error gets the operation and the user.
    """
    users = [entry.pw_uid for entry in pwd.getpwall() if entry.pw_name == user]
    try:
        connection = socket.socket(fileno=os.dup(0))
    except OSError:
        raise WrongUsageError(
            "Standard input is not a connection",
            hint="systemd starts this helper for each connection.",
        ) from None
    with connection:
        said = serve(connection, find_operation, Paths(root, {}), users=users)
    click.echo(printable(said), err=True)
