"""`release-tools verify`."""

from __future__ import annotations

from typing import Any

import click

from platform_common.cli.group import Number, print_json
from release_tools.commands.options import AS_JSON, JOBS, Version, progress_shown
from release_tools.commands.trusted_keys import PUBLIC_KEYS, load_keys
from release_tools.manifest.vocabulary import CHANNELS, VERIFIER_NAMES
from release_tools.progress import byte_progress
from release_tools.reporting import overall_exit_code, print_verification, verification_json
from release_tools.verifying.verify import VerifyRequest, verify_location


@click.command(
    epilog="""\b
Examples:
  release-tools verify https://downloads.example.org/stable -p release.pub
  release-tools verify dist --public-key release.pub --json
"""
)
@click.argument("location")
@PUBLIC_KEYS
@click.option("--channel", type=click.Choice(CHANNELS), help="The expected release channel.")
@click.option("--target", help="Read only the artefacts for this target.")
@click.option("--profile", help="Read only the artefacts for this profile.")
@click.option("--manifest-only", is_flag=True, help="Read no artefact.")
@click.option(
    "--verifier",
    type=click.Choice(VERIFIER_NAMES),
    default="native",
    show_default=True,
    help="What checks signatures: this program, the minisign program, or both.",
)
@click.option("--not-older-than", type=Version(), help="Refuse a release older than this version.")
@click.option(
    "--max-age", type=click.IntRange(0, 100_000), metavar="DAYS", help="Refuse an older manifest."
)
@click.option(
    "--timeout",
    type=Number(0, 86_400, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest time to wait for a silent server.",
)
@JOBS
@AS_JSON
def command(location: str, public_keys: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Verify the release at LOCATION.

    LOCATION is a manifest, a channel directory or a distribution root: a path,
    or an http, https, file, s3, gs or az URL. First the manifest's signature is
    checked over its exact bytes, before they are parsed; then its schema; then
    the size, SHA-256 and signature of every artefact. Every finding is
    reported, and the last line says whether to trust the release.
    """
    keys = load_keys(public_keys)
    with byte_progress("Verifying", shown=progress_shown()) as start:
        reports = verify_location(VerifyRequest(location, keys, **options), start)
    if as_json:
        print_json(verification_json(location, reports))
    else:
        print_verification(reports)
    click.get_current_context().exit(overall_exit_code(reports))
