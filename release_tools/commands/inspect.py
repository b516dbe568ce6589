"""`release-tools inspect`."""

from __future__ import annotations

import json

import click

from platform_common.cli.group import print_json
from release_tools.commands.options import AS_JSON
from release_tools.inspection import read_manifests
from release_tools.manifest.document import render
from release_tools.origins.stream import without_secrets
from release_tools.reporting import print_manifest


@click.command(
    epilog="""\b
Example:
  release-tools inspect https://downloads.example.org/stable/manifest.json
"""
)
@click.argument("location")
@AS_JSON
def command(location: str, as_json: bool) -> None:
    """Show what the manifest at LOCATION says, trusting nothing.

    Reads it and checks its schema, not its signature.
    """
    manifests = read_manifests(location)
    if as_json:
        documents = [
            # Ours go last: a manifest may have members of these names.
            ours | json.loads(render(manifest)) | ours
            for url, manifest in manifests
            for ours in [{"manifest": without_secrets(url), "verified": False}]
        ]
        print_json(documents[0] if len(documents) == 1 else documents)
        return
    for url, manifest in manifests:
        print_manifest(url, manifest)
