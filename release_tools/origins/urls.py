"""Where the URLs of a manifest lead (docs/reference/manifest.md, "URLs")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit


def resolve(manifest_url: str, url: str) -> str:
    """The absolute URL that `url` means in the manifest at `manifest_url`.

    A relative one is taken against the parent of the manifest's own URL, for
    every scheme of an origin; an absolute one is returned unchanged.
    """
    if urlsplit(url).scheme:
        return url
    parts = urlsplit(manifest_url)
    # urljoin joins only for the schemes that it knows: lend it one, then give it back.
    joined = urljoin(parts._replace(scheme="http").geturl(), url)
    return parts.scheme + joined.removeprefix("http")


def leaves_tree(manifest_url: str, url: str) -> bool:
    """Whether a relative `url` leads out of the folder that holds the manifest."""
    if urlsplit(url).scheme:
        return False
    parent = resolve(manifest_url, ".")
    return not resolve(manifest_url, url).startswith(parent) or any(_dots(url))


def _dots(url: str) -> Iterator[bool]:
    for part in re.split(r"[/\\]|%2[fF]|%5[cC]", urlsplit(url).path):
        yield part.replace("%2e", ".").replace("%2E", ".") == ".."
