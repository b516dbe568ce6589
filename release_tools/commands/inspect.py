"""`release-tools inspect`."""

from __future__ import annotations

import json
from typing import Any

import click

from platform_common.cli.group import print_json
from release_tools.commands.options import AS_JSON
from release_tools.distribution.manifest_location import ManifestLocation, find_manifests
from release_tools.manifest.document import Manifest, render
from release_tools.manifest.parser import parse
from release_tools.origins.origin import Origin
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
    """Show what the manifest at LOCATION says, without verifying it.

    The manifest is read and checked against its schema; its signature is not checked.
    """
    origin = Origin()
    manifests = [
        (found.location, parse(found.read(origin)))
        for found in find_manifests(location, origin, unsigned=True)
    ]
    if as_json:
        documents = [_document(*manifest) for manifest in manifests]
        print_json(documents[0] if len(documents) == 1 else documents)
        return
    for manifest in manifests:
        print_manifest(*manifest)


def _document(location: ManifestLocation, manifest: Manifest) -> dict[str, Any]:
    ours: dict[str, Any] = {"manifest": location.public_url, "verified": False}
    # Ours come first, and once more at the end: a manifest may have members of these names.
    return {**ours, **json.loads(render(manifest)), **ours}
