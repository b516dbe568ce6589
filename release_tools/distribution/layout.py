"""The names and size limits of the files in a distribution (docs/reference/manifest.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from release_tools.manifest.document import Manifest
from release_tools.origins.urls import url_filename

MANIFEST_NAME = "manifest.json"
UNSIGNED_SUFFIX = ".unsigned"
SIGNATURE_SUFFIX = ".minisig"
MANIFEST_LIMIT_BYTES = 16 << 20
SIGNATURE_LIMIT_BYTES = 64 << 10
REFERENCE_LIMIT_BYTES = 4 << 10


def unexpected_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield the files of the release in `folder` that the manifest does not list."""
    expected = set()
    for artefact in manifest.artefacts:
        expected |= {artefact.filename, artefact.filename + SIGNATURE_SUFFIX}
        expected |= {url_filename(artefact.minisig_url), url_filename(artefact.url or "")}
    try:
        names = {path.name for path in (folder / manifest.release_version.text).iterdir()}
    except OSError:
        return
    for name in sorted(names - expected):
        yield f"{manifest.release_version}/{name}"
