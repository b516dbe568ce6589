"""`platformctl tunnel`, which the unit of the tunnel runs."""

from __future__ import annotations

from pathlib import Path

import click

from platform_common.cli.group import print_error
from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platform_common.process.spawn import ProcessError, become

# The unit does not restart after this exit code.
_NOTHING_HELPS = 65


@click.group(hidden=True)
def command() -> None:
    """Run the tunnel from the internet to this device."""


@command.command(epilog="\b\nExample:\n  platformctl tunnel run")
@click.option(
    "--credentials",
    type=click.Path(path_type=Path),
    envvar="CREDENTIALS_DIRECTORY",
    help="Folder with systemd's copies of the files in /etc/platform/tunnel.",
)
@click.pass_context
def run(ctx: click.Context, credentials: Path | None) -> None:
    """Become cloudflared, with a tunnel to the gateway of the active profile.

    Uses config.yml in /etc/platform/tunnel if there is one, else the named tunnel of
    credentials.json there, else a quick tunnel. Exits with 65 if a retry would fail in
    the same way.
    """
    # Here: help loads the module of every command, and must not load the wizard.
    from platformctl import tunnel

    try:
        become(tunnel.command(ctx.ensure_object(Paths), credentials))
    except ProcessError as error:
        hint = "Install cloudflared, then run: systemctl restart platform-tunnel"
        print_error(PlatformError(error.message, hint=hint))
    except PlatformError as error:
        print_error(error)
    ctx.exit(_NOTHING_HELPS)
