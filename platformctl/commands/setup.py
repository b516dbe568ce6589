"""`platformctl setup`."""

from __future__ import annotations

import click

from platform_common.cli.group import print_json, warn
from platform_common.control_answers import to_json
from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platformctl.printing import as_json
from platformctl.prompts import agree, yes_option


@click.group()
def command() -> None:
    """Show or run setup, and show how far it came.

    The wizard asks the questions and applies the answers; these commands use the same
    answers and the same plan.
    """


@command.command(
    epilog="""\b
Examples:
  sudo platformctl setup plan
  sudo platformctl setup plan --contents
  PLATFORM_ROOT=dev-out platformctl setup plan --json
"""
)
@click.option("--contents", is_flag=True, help="Show the contents of the files, secrets masked.")
@as_json
@click.pass_obj
def plan(paths: Paths, *, contents: bool, as_json: bool) -> None:
    """Show everything that applying the wizard's answers will do.

    Lists every file with its mode and its owner, and every command, in order: the same
    plan that the review page shows and that is executed. It is made from the wizard's
    answers, which only their owner and root can read, and changes nothing. Secrets are
    only in the wizard's memory; each is shown as three dots.
    """
    # Here and below: help loads the module of every command, and must not load the wizard.
    from platformctl.setup import plan as setup
    from platformctl.setup import text as setup_text

    found, problems = setup.plan(paths)
    if as_json:
        print_json(to_json(found))
    else:
        setup_text.print_plan(found, contents=contents)
    for problem in problems:
        warn(PlatformError(problem))


@command.command(
    epilog="""\b
Examples:
  sudo platformctl setup status
  sudo platformctl setup status --json
"""
)
@as_json
@click.pass_obj
def status(paths: Paths, *, as_json: bool) -> None:
    """Show whether the device is set up, and the last attempt.

    Each action is waiting, running, done, failed, or kept (done in an earlier attempt).
    Applying the plan again repeats finished actions and does the rest.
    """
    from platformctl.setup import plan as setup
    from platformctl.setup import text as setup_text

    found = setup.status(paths)
    if as_json:
        print_json(to_json(found))
    else:
        setup_text.print_status(found)


@command.command(
    epilog="""\b
Examples:
  sudo platformctl setup apply
  sudo platformctl setup apply --yes
"""
)
@yes_option
@click.pass_obj
def apply(paths: Paths, *, yes: bool) -> None:
    """Set this device up with the given answers, from a terminal.

    Does what the wizard's button does, without a browser. It uses the secrets that are
    already on the device; others must be entered in the wizard. For users other than
    root, the root helper does it.
    """
    from platformctl.setup import apply as setup
    from platformctl.setup import text as setup_text

    if not paths.is_machine:
        raise PlatformError(
            "A device in a folder can only be set up by its wizard",
            hint="Open the wizard that created the folder, and press its button.",
        )
    agree("Set this device up as platformctl setup plan shows?", yes=yes)
    setup.apply(paths, setup_text.print_progress)
    click.echo("This device is set up.")


@command.command(
    epilog="""\b
Examples:
  sudo platformctl setup again
  sudo platformctl setup again --yes
"""
)
@yes_option
@click.pass_obj
def again(paths: Paths, *, yes: bool) -> None:
    """Reopen setup on a configured device.

    Answers are kept, and nothing changes until the wizard's button is pressed again.
    Only root may do this: afterwards, anyone with the link of the wizard can set the
    device up.
    """
    from platformctl.setup import apply as setup

    agree("Reopen setup on this device?", yes=yes)
    setup.again(paths)
    click.echo("Setup is open again. All answers are kept.")
    click.echo("Start the wizard:  systemctl restart platform-wizard.service")
    click.echo("See its link:      wizard-app launch-url --production")
