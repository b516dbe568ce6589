"""The command line `wizard-app`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from platform_common import ports
from platform_common.cli.group import CommandGroup, prepare, print_json, run_and_leave
from platform_common.errors import PlatformError, WrongUsageError
from platform_common.version import VERSION
from wizard_app.access import sessions
from wizard_app.access.token_file import TokenFile
from wizard_app.launch import qr_code
from wizard_app.launch.console import keep_shown
from wizard_app.launch.launch_url import served, waiting_token
from wizard_app.setup.serving_file import Serving, ServingFile, owner_of
from wizard_app.setup.settings import WizardSettings

F = TypeVar("F", bound=Callable[..., Any])
_ONCE = "Open one of these links or scan the code. It works once, in one browser:"


def _device(command: F) -> F:
    """Options that select the wizard, the same for every command."""
    production = click.option(
        "--production", is_flag=True, help="Set up this machine; without it, a folder."
    )
    dev_out = click.option(
        "--dev-out", metavar="DIR", help="Folder to set up instead of a machine [dev-out]."
    )
    return production(dev_out(command))


_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="wizard-app")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Set up this device in a browser.

    \b
    Exit codes:
      0  success
      1  failure
      2  wrong usage
    """  # noqa: D301 - \b keeps the lines apart, for click
    prepare(ctx)


@main.command(
    epilog="""\b
Examples:
  wizard-app serve
  wizard-app serve --production --bind 0.0.0.0:8088
  wizard-app serve --behind-proxy --bind unix:/run/platform/wizard.sock
"""
)
@click.option(
    "--bind",
    default=f"127.0.0.1:{ports.WIZARD}",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; [IPV6]:PORT and unix:/PATH are addresses too.",
)
@click.option("--token", metavar="HEX", help="First launch token; random by default.")
@click.option("--no-token", is_flag=True, help="Let everyone in; not in production.")
@_device
@click.option(
    "--certfile",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Certificate for https, PEM; production makes its own by default.",
)
@click.option(
    "--keyfile",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Private key of the certificate, PEM; by default in the same file.",
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="A proxy provides https, and says so with X-Forwarded-Proto.",
)
def serve(bind: str, certfile: Path | None, keyfile: Path | None, **options: Any) -> None:
    """Serve the wizard until it is stopped.

    Runs gunicorn with one process and many threads, and prints the link that opens the
    wizard. Further settings are environment variables, which
    docs/reference/wizard-app.md lists.
    """
    if keyfile and not certfile:
        raise WrongUsageError("--keyfile needs --certfile", hint="Give both, or neither.")
    try:
        # The other commands do not need its libraries, which may not be installed.
        from wizard_app.server import Certificate, serve_wizard

        settings = _settings(**options)
        given = Certificate(certfile, keyfile) if certfile else None
        serve_wizard(settings, bind, given, lambda serving, token: _show(serving, token, unit=True))
    except ModuleNotFoundError as error:
        raise PlatformError(
            f"The package {error.name} is not installed",
            hint="Install it with: pip install 'platform-appliance[web,wizard]'",
        ) from error


@main.command(
    "launch-url",
    epilog="""\b
Examples:
  wizard-app launch-url
  wizard-app launch-url --production
""",
)
@_device
@_JSON
def launch_url(*, as_json: bool, **options: Any) -> None:
    """Show the launch link again, as long as it is unused."""
    settings = _settings(**options)
    serving = served(settings.token_file)
    token = waiting_token(settings.token_file)
    if not token:
        raise PlatformError(
            "The launch link was used, or this wizard does not need one",
            hint="Make a new one with: wizard-app new-token",
        )
    _show(serving, token, as_json=as_json)


@main.command(
    "new-token",
    epilog="""\b
Examples:
  wizard-app new-token
  wizard-app new-token --production
""",
)
@_device
@_JSON
def new_token(*, as_json: bool, **options: Any) -> None:
    """Make a new link that opens the wizard.

    An unused one stops working; open sessions continue, and all answers are kept.
    """
    settings = _settings(**options)
    serving = served(settings.token_file)
    token = sessions.new_token()
    # Root writes it for the user of the wizard.
    owner = owner_of(ServingFile(settings.token_file).path)
    TokenFile(settings.token_file).write(token, owner)
    _show(serving, token, as_json=as_json)


@main.command(
    epilog="""\b
Examples:
  wizard-app console --production
"""
)
@_device
def console(**options: Any) -> None:
    """Show the link and its QR code on the screen of the device.

    The text appears before each login, on screens and on serial lines, until the device
    is set up or this program is stopped. It follows the addresses of the device, and
    disappears when the link has been used.
    """
    keep_shown(_settings(**options))


def _settings(
    *,
    production: bool,
    dev_out: str | None,
    token: str | None = None,
    no_token: bool = False,
    behind_proxy: bool = False,
) -> WizardSettings:
    """The settings from the environment and the options, which take precedence."""
    if token is not None and no_token:
        raise WrongUsageError("--token and --no-token exclude each other")
    if token == "":
        raise WrongUsageError(
            "The launch token is not valid", hint="Leave out --token for a random one."
        )
    options = {
        "WIZARD_PRODUCTION": "1" if production else None,
        "WIZARD_DEV_OUT": dev_out,
        "WIZARD_TOKEN": token,
        "WIZARD_NO_TOKEN": "1" if no_token else "0" if token is not None else None,
        "WIZARD_BEHIND_PROXY": "1" if behind_proxy else None,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return WizardSettings.from_env({**os.environ, **given})


def _show(serving: Serving, token: str, *, as_json: bool = False, unit: bool = False) -> None:
    """Print the launch URLs and the fingerprint, and on a terminal the first URL as a QR code.

    For a systemd `unit`, whose output goes to the journal, only print how to see them.
    """
    urls = serving.urls(token)
    if as_json:
        print_json({"url": urls[0], "urls": urls, "fingerprint": serving.fingerprint or None})
        return
    if unit and token and _is_journal():
        click.echo("To see the link that opens the wizard: wizard-app launch-url")
        return
    click.echo(_ONCE if token else "Open one of these links. Everyone is let in:", err=True)
    if not serving.bases:
        click.echo("(add the address of the proxy or the server in front)", err=True)
    for url in urls:
        click.echo(url)
    if serving.fingerprint:
        click.echo(f"SHA-256 fingerprint of its certificate: {serving.fingerprint}")
    if sys.stdout.isatty() and serving.bases:
        click.echo(qr_code.on_terminal(urls[0], colour=not os.environ.get("NO_COLOR")), color=True)


def _is_journal() -> bool:
    """Whether standard output goes to the journal."""
    status = os.fstat(1)
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def program() -> None:
    """Run the program `wizard-app`."""
    run_and_leave(main)
