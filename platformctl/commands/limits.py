"""`platformctl limits`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from platform_common.cli.group import print_json
from platform_common.formats.decode import from_json
from platform_common.paths import LIMITS, Paths
from platform_common.records import record_file
from platform_common.records.limits import Limits, parse
from platformctl.printing import as_json, print_facts, styled

_CAPABILITIES = {
    "local_llm": "run a language model of its own",
    "voice_wake_word": "listen for the wake word",
    "voice_tts": "speak",
    "clamav_daemon": "scan for viruses all the time",
}


@click.command(
    epilog="""\b
Examples:
  platformctl limits
  platformctl limits --json
"""
)
@as_json
@click.pass_obj
def command(paths: Paths, *, as_json: bool) -> None:
    """Show what this device can do, and what it cannot.

    Where something would change that, it says what.
    """
    found = paths.find(LIMITS)
    if as_json:
        print_json(record_file.read(found, _whole))
    else:
        _print(record_file.read(found, parse), shipped=found.shipped)


def _whole(data: bytes) -> dict[str, Any]:
    """The record as plain JSON, with the members that this version does not know."""
    parse(data)
    return from_json(data, dict[str, Any])


def _print(limits: Limits, *, shipped: bool) -> None:
    facts = [
        ("Device", styled(limits.target, bold=True)),
        ("Tier", styled(limits.tier)),
        ("Memory", styled(f"{limits.ram_mb:,} MB ({limits.ram_class})")),
        ("Storage", styled(limits.storage_class)),
    ]
    if limits.cloud:
        facts.append(("Host", styled(limits.cloud)))
    if limits.airgap_supported:
        facts.append(("Offline", styled(f"up to {limits.airgap_max_tier or limits.tier}")))
    print_facts(facts)
    able = limits.capabilities
    _print_list("Can", "+", "green", [_CAPABILITIES[n] for n in _CAPABILITIES if getattr(able, n)])
    _print_list("Can, but each uses a lot of memory", "+", "green", able.channels_heavy)
    if limits.limitations:
        click.echo(f"\n{styled('Cannot', bold=True)}")
    for limitation in limits.limitations:
        name = styled(limitation.id, dim=True)
        click.echo(f"  {styled('-', 'yellow')} {styled(limitation.reason)}  {name}")
        if limitation.unblock:
            click.echo(f"    {styled(limitation.unblock, dim=True)}")
    _print_list(
        "Channels for which it has too little memory", "-", "yellow", able.channels_disabled_by_ram
    )
    if shipped:
        note = "This device has no limits of its own; these are the shipped ones."
        click.echo(f"\n{styled(note, dim=True)}")


def _print_list(title: str, sign: str, colour: str, items: Sequence[str]) -> None:
    if items:
        click.echo(f"\n{styled(title, bold=True)}")
    for item in items:
        click.echo(f"  {styled(sign, colour)} {styled(item)}")
