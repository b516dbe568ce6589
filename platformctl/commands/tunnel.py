"""`platformctl tunnel`, which the unit of the tunnel runs."""

from __future__ import annotations

from pathlib import Path

import click

from platform_common.cli.group import print_error
from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platform_common.process.spawn import ProcessError, become

# For systemd, which tries again after anything else.
_NOTHING_HELPS = 65


@click.group(hidden=True)
def command() -> None:
    """Run the tunnel to this device from the internet."""


@command.command(epilog="\b\nExample:\n  platformctl tunnel run")
@click.option(
    "--credentials",
    type=click.Path(path_type=Path),
    envvar="CREDENTIALS_DIRECTORY",
    help="Folder of systemd's copies of what is in /etc/platform/tunnel.",
)
@click.pass_context
def run(ctx: click.Context, credentials: Path | None) -> None:
    """Become cloudflared, with a tunnel to the gateway of the active profile.

    It goes by config.yml in /etc/platform/tunnel; else it is the named tunnel of
    credentials.json there, and without that a quick one. Exits with 65 when it would
    fail again in the same way.
    """
    # Here, as the help of all commands loads this module, and must not load the wizard.
    from platformctl import tunnel

    try:
        become(tunnel.command(ctx.ensure_object(Paths), credentials))
    except ProcessError as error:
        hint = "Install cloudflared, then run: systemctl restart platform-tunnel"
        print_error(PlatformError(error.message, hint=hint))
    except PlatformError as error:
        print_error(error)
    ctx.exit(_NOTHING_HELPS)
