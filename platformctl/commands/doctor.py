"""`platformctl doctor`."""

from __future__ import annotations

import click

from platform_common.cli.group import print_json
from platform_common.control_answers import Check, Verdict, to_json
from platform_common.paths import Paths
from platformctl import printing
from platformctl.checks import doctor
from platformctl.printing import styled

_LOOKS = {"Pass": ("✓", "green"), "Warn": ("!", "yellow"), "Fail": ("✗", "red"), "Skip": ("-", "")}


@click.command(
    "doctor",
    epilog="""\b
Examples:
  platformctl doctor
  platformctl doctor --json
""",
)
@printing.as_json
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Check the device for problems.

    Runs all checks at the same time, in six seconds at most. Some checks need root:
    for other users the root helper makes them if there is one, otherwise they are
    skipped. Each problem is shown with what to do about it. The exit code is 0 if no
    check failed, otherwise 1.
    """
    paths: Paths = ctx.obj
    verdict = doctor.verdict(paths)
    if as_json:
        print_json(to_json(verdict))
    else:
        _show(verdict)
    ctx.exit(1 if verdict.fails else 0)


def _show(verdict: Verdict) -> None:
    printing.print_table(("", "CHECK", "FOUND"), [_row(check) for check in verdict.checks])
    fixes = [check for check in verdict.checks if check.fix]
    if fixes:
        click.echo("\nWhat to do:")
        for check in fixes:
            click.echo(f"  {_styled(check, check.name)}: {styled(check.fix)}")
    click.echo(f"\n{_summary(verdict)}")


def _row(check: Check) -> tuple[str, str, str]:
    sign, _ = _LOOKS[check.outcome.kind]
    return _styled(check, sign), styled(check.name), _styled(check, check.outcome.detail)


def _styled(check: Check, text: str) -> str:
    quiet = check.outcome.kind in ("Pass", "Skip")
    is_sign = len(text) == 1
    colour = _LOOKS[check.outcome.kind][1]
    return styled(text, colour if is_sign or not quiet else "", dim=quiet and not is_sign)


def _summary(verdict: Verdict) -> str:
    counts = (
        ("failed", verdict.fails, "red"),
        ("warned", verdict.warns, "yellow"),
        ("passed", verdict.passes, "green"),
        ("skipped", verdict.skips, ""),
    )
    return ", ".join(
        styled(f"{count} {word}", colour if count else "") for word, count, colour in counts
    )
