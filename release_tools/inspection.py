"""Reading manifests without trusting them."""

from __future__ import annotations

from release_tools.distribution.layout import MANIFEST_LIMIT_BYTES, manifests_at
from release_tools.manifest.document import Manifest, parse
from release_tools.origins.origin import Origin


def read_manifests(location: str) -> list[tuple[str, Manifest]]:
    """URL and content of the manifests at `location`, an unsigned one too.

    Raises `UnreadableError`, `ManifestError` and `SchemaVersionError`.
    """
    origin = Origin()
    urls = manifests_at(location, origin, unsigned=True)
    return [(url, parse(origin.read(url, MANIFEST_LIMIT_BYTES))) for url in urls]
