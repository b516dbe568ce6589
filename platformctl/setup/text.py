"""The plan and the progress of setup as text for people."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

import click

from platformctl.answers import Missing, SetupAction, SetupPlan, SetupStatus
from platformctl.printing import styled
from platformctl.setup.plan import heading
from wizard_app.setup.apply.progress import SetupProgress
from wizard_app.setup.state import DONE

# The sign and colour of each state of an action.
_LOOKS = {
    "waiting": ("○", ""),
    "running": ("◐", "yellow"),
    "done": ("✓", "green"),
    "failed": ("✗", "red"),
    "kept": ("✓", ""),
}
_OUTCOMES = {
    "none": "Nothing has been applied yet.",
    "unfinished": "Setup is running or was interrupted. It started at {at}.",
    "failed": "Setup failed. It started at {at}.",
    "done": "Everything was applied. It started at {at}.",
}


def print_plan(plan: SetupPlan, *, contents: bool) -> None:
    """Print the answer to `setup plan`."""
    if plan.step == DONE:
        click.echo("This device is set up, so none of this will be done.\n")
    for phase, actions in groupby(plan.actions, attrgetter("phase")):
        click.echo(styled(heading(phase), bold=True))
        for action in actions:
            _print_action(action, contents=contents)
    if plan.step != DONE:
        _print_missing("Missing, so nothing can be applied yet", plan.lacks)
        _print_missing("Secrets that the wizard needs", plan.secrets)


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


def print_status(status: SetupStatus) -> None:
    """Print the answer to `setup status`."""
    if status.complete:
        since = f" since {styled(status.completed_at)}" if status.completed_at else ""
        click.echo(f"This device is set up{since}.")
    click.echo(_OUTCOMES[status.outcome].format(at=styled(status.began_at)))
    for action in status.actions:
        _print_tried(action.state, action.said, action.why)


def print_progress(progress: SetupProgress) -> None:
    """Print one action of `setup apply` once it has ended."""
    if progress.state != "running":
        click.echo(f"{progress.number:>3}/{progress.of}", nl=False)
        _print_tried(progress.state, progress.said, progress.why)


def _print_tried(state: str, said: str, why: str) -> None:
    sign, colour = _LOOKS.get(state, ("", ""))
    click.echo(f"  {styled(sign, colour)} {styled(state.ljust(7), colour)}  {styled(said)}")
    if why:
        click.echo(f"             {styled(why, colour)}")
