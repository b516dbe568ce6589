"""`platformctl status`."""

from __future__ import annotations

import click

from platform_common.cli.group import print_json, warn
from platform_common.control_answers import ActiveProvider, Status, to_json
from platform_common.paths import Paths
from platformctl import printing
from platformctl.printing import styled
from platformctl.status import status

# The sign and colour of each systemd state.
_LOOKS = {
    "active": ("●", "green"),
    "reloading": ("●", "green"),
    "activating": ("◐", "yellow"),
    "deactivating": ("◐", "yellow"),
    "failed": ("×", "red"),
}
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@click.command(
    "status",
    epilog="""\b
Examples:
  platformctl status
  platformctl status --json
""",
)
@printing.as_json
@click.pass_obj
def command(paths: Paths, as_json: bool) -> None:
    """Show what the device is doing right now.

    The active profile and its gateway, the chosen provider and channels, the tunnel,
    whether a cost cap is reached, and the result of the last doctor. An unknown part
    has its default, and a warning says why.
    """
    now, problems = status(paths)
    if as_json:
        print_json(to_json(now))
    else:
        printing.print_facts(_facts(now))
    for problem in problems:
        warn(problem)


def _facts(now: Status) -> list[tuple[str, str]]:
    profile = styled(now.agent.display_name or now.profile_id or "none yet", bold=True)
    if now.agent.display_name and now.agent.display_name != now.profile_id:
        profile += styled(f"  {now.profile_id}", dim=True)
    tunnel = _state(now.tunnel.active_state) + (", enabled at boot" if now.tunnel.enabled else "")
    since = "" if now.uptime_seconds is None else f" for {_duration(now.uptime_seconds)}"
    gateway = _state(now.active_state) + since
    cost = styled("✗ a cap is reached", "red") if now.cost_tripped else "✓ below the caps"
    chosen = [("Provider", _provider(now.provider))] if now.provider.id else []
    if now.channels:
        chosen.append(("Channels", ", ".join(now.channels)))
    return [
        ("Profile", profile),
        *chosen,
        ("Gateway", f"{gateway}  {styled(now.unit, dim=True)}"),
        ("Tunnel", f"{tunnel}  {styled(now.tunnel.unit, dim=True)}"),
        ("Cost", cost),
        ("Doctor", _doctor(now.doctor_fails)),
    ]


def _provider(provider: ActiveProvider) -> str:
    more = " ".join(filter(None, (provider.id, provider.model, provider.endpoint)))
    return f"{styled(provider.display_name, bold=True)}  {styled(more, dim=True)}"


def _state(active_state: str) -> str:
    sign, colour = _LOOKS.get(active_state, ("○", ""))
    return styled(f"{sign} {active_state}", colour)


def _doctor(fails: int | None) -> str:
    if fails is None:
        return "○ not run since the device started"
    if not fails:
        return styled("✓ no check failed", "green")
    checks = "1 check" if fails == 1 else f"{fails} checks"
    return styled(f"✗ {checks} failed", "red") + ", see platformctl doctor"


def _duration(seconds: int) -> str:
    """The two largest units, such as `3 d 4 h`."""
    words: list[str] = []
    for unit, length in _UNITS:
        count, seconds = divmod(seconds, length)
        if count or (unit == "s" and not words):
            words.append(f"{count} {unit}")
    return " ".join(words[:2])
