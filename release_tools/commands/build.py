"""`release-tools build`."""

from __future__ import annotations

from pathlib import Path

import click

from platform_common.cli.group import Text, print_json
from platform_common.resources import data_path
from release_tools.building.build import BuildRequest, build_release
from release_tools.building.naming import profile_ids, target_matrix
from release_tools.commands.options import (
    AS_JSON,
    JOBS,
    PATH,
    Version,
    printable_path,
    progress_shown,
)
from release_tools.commands.signing_inputs import signing_key, timestamp
from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import Manifest
from release_tools.manifest.vocabulary import CHANNELS
from release_tools.progress import byte_progress


def _trackers(values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, equals, tag in pairs:
        if not (name and equals and tag):
            raise click.UsageError("--tracker takes ID=TAG, such as openclaw=v2026.4.25.")
    trackers = {name: tag for name, _, tag in pairs}
    if len(trackers) != len(pairs):
        raise click.UsageError("--tracker names a profile twice.")
    return trackers


@click.command(
    epilog="""\b
Example:
  SIGNING_SECRET_KEY=~/keys/release.key \\
    release-tools build images/ --version 2026.11.1 --channel stable
"""
)
@click.argument("artefact_dir", type=PATH)
@click.option("--version", required=True, type=Version(), help="The version: Y.M.D[-suffix].")
@click.option("--channel", required=True, type=click.Choice(CHANNELS), help="The release channel.")
@click.option("--output", default="dist", show_default=True, type=PATH, help="Where to publish.")
@click.option(
    "--profiles",
    type=PATH,
    envvar="PLATFORM_PROFILES_DIR",
    help="Folder of profile definitions. Default: the shipped ones.",
)
@click.option("--targets", type=PATH, help="Target matrix (TOML). Default: the shipped one.")
@click.option(
    "--tracker", multiple=True, type=Text(), metavar="ID=TAG", help="Upstream tag of a profile."
)
@click.option("--wizard-version", type=Text(), help="Version of the bundled wizard.")
@click.option("--chat-ui-version", type=Text(), help="Version of the bundled chat UI.")
@JOBS
@AS_JSON
def command(
    artefact_dir: Path,
    version: CalVer,
    channel: str,
    output: Path,
    profiles: Path | None,
    targets: Path | None,
    tracker: tuple[str, ...],
    wizard_version: str | None,
    chat_ui_version: str | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Build a release from the artefacts in ARTEFACT_DIR.

    The artefacts are laid out below OUTPUT and described in manifest.json. If
    SIGNING_SECRET_KEY is set (to a minisign secret key's path, text or base64
    line), everything is signed; otherwise manifest.json.unsigned is written.
    The same inputs and SOURCE_DATE_EPOCH give the same bytes.
    """
    key = signing_key()
    request = BuildRequest(
        artefact_dir=artefact_dir,
        output=output,
        version=version,
        channel=channel,
        profiles=profile_ids(profiles or data_path("profiles")),
        targets=target_matrix(targets or data_path("targets.toml")),
        timestamp=timestamp(),
        tracker=_trackers(tracker),
        wizard_version=wizard_version,
        chat_ui_version=chat_ui_version,
        jobs=jobs,
    )
    with byte_progress("Building", shown=progress_shown()) as start:
        manifest, path = build_release(request, key, start)
    if as_json:
        print_json(
            {
                "ok": True,
                "manifest": str(path),
                "signed": key is not None,
                "release_version": version.text,
                "channel": channel,
                "artefacts": [artefact.filename for artefact in manifest.artefacts],
            }
        )
    else:
        _print(manifest, path, signed=key is not None)


def _print(manifest: Manifest, path: Path, *, signed: bool) -> None:
    count = len(manifest.artefacts)
    contents = "1 artefact" if count == 1 else f"{count} artefacts"
    release = f"{manifest.release_version} on {manifest.channel}"
    click.echo(f"Release {release} with {contents}: {printable_path(path)}")
    if not signed:
        click.secho(
            "It is NOT SIGNED, because SIGNING_SECRET_KEY is not set. Sign it with:\n"
            f"  release-tools sign {printable_path(path)}",
            fg="yellow",
        )
