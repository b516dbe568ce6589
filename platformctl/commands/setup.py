"""`platformctl setup`."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

import click

from platform_common.command_line import print_json, warn
from platform_common.errors import PlatformError
from platform_common.paths import Paths
from platform_common.setup import Missing, SetupAction, SetupPlan, SetupStatus, TriedAction
from platform_common.views import to_json
from platformctl.printing import as_json, styled

_DONE = "done"
# What an action of a try looks like: a sign and a colour.
_LOOKS = {
    "waiting": ("○", ""),
    "running": ("◐", "yellow"),
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "kept": ("✓", ""),
}
_OUTCOMES = {
    "none": "Nothing was applied yet.",
    "unfinished": "Setting up goes on, or was interrupted; it began at {at}.",
    "failed": "Setting up failed; it began at {at}.",
    "done": "All is applied; it began at {at}.",
}


@click.group()
def command() -> None:
    """Show what setting up will do, and how far it came.

    The wizard asks the questions and applies the answers; here is what it sees.
    """


@command.command(
    epilog="""\b
Examples:
  sudo platformctl setup plan
  sudo platformctl setup plan --contents
  PLATFORM_ROOT=dev-out platformctl setup plan --json
"""
)
@click.option("--contents", is_flag=True, help="Show what is in the files, secrets masked.")
@as_json
@click.pass_obj
def plan(paths: Paths, *, contents: bool, as_json: bool) -> None:
    """Show what the wizard will do once its answers are applied.

    Every file with its mode and its owner, and every command, in their order: the very
    plan that the review page shows and that is carried out. It is made from the wizard's
    answers, which their owner and root may read, and changes nothing. Secrets are in
    the wizard's memory alone; where one belongs, three dots stand.
    """
    # Here, as no other command needs the wizard.
    from platformctl import setup

    found, problems = setup.plan(paths)
    if as_json:
        print_json(to_json(found))
    else:
        _print_plan(found, contents=contents)
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
    """Show how far applying the answers came, the last time that it began.

    Each action is waiting, running, done, failed or kept: done in an earlier try. What
    was not done is done, and what was done is repeated, when they are applied once more.
    """
    from platformctl import setup

    found = setup.status(paths)
    if as_json:
        print_json(to_json(found))
    else:
        _print_status(found)


def _print_plan(plan: SetupPlan, *, contents: bool) -> None:
    from platformctl import setup

    if plan.step == _DONE:
        click.echo("This device is set up: nothing of this is done any more.\n")
    for phase, actions in groupby(plan.actions, attrgetter("phase")):
        click.echo(styled(setup.heading(phase), bold=True))
        for action in actions:
            _print_action(action, contents=contents)
    if plan.step != _DONE:
        _print_missing("Missing, so that nothing can be applied yet", plan.lacks)
        _print_missing("Secrets that the wizard must hold in memory", plan.secrets)


def _print_action(action: SetupAction, *, contents: bool) -> None:
    done = styled("  (done before a restart)", dim=True) if action.kept else ""
    click.echo(f"  {styled(action.said)}{done}")
    if contents:
        for line in (*action.content.splitlines(), *action.keys):
            click.echo(f"    {styled(line, dim=True)}".rstrip())


def _print_missing(heading: str, missing: tuple[Missing, ...]) -> None:
    if missing:
        click.echo(f"\n{styled(heading, 'yellow')}")
    for one in missing:
        click.echo(f"  {styled(one.step)}: {styled(one.what)}")


def _print_status(status: SetupStatus) -> None:
    click.echo(_OUTCOMES[status.outcome].format(at=styled(status.began_at)))
    for action in status.actions:
        _print_tried(action)


def _print_tried(action: TriedAction) -> None:
    sign, colour = _LOOKS[action.state]
    click.echo(f"  {styled(sign, colour)} {styled(action.state.ljust(7), colour)}  ", nl=False)
    click.echo(styled(action.said))
    if action.why:
        click.echo(f"             {styled(action.why, colour)}")
