"""URLs: how they are shown in messages, and which files they name."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from release_tools.origins.stream import RefusedUrlError


def without_secrets(url: str) -> str:
    """`url` without user name, password, query and fragment; a path is returned unchanged."""
    if "://" not in url:
        return url
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def show_url(url: str) -> str:
    """`url` for a message: without secrets, and a `file:` URL as its path."""
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" else without_secrets(url)


def url_filename(url: str) -> str:
    """The last part of the path of `url`, decoded."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


def local_path(url: str) -> Path:
    """The path that a `file:` URL names.

    Raises `RefusedUrlError` for a URL that names a file of another machine.
    """
    parts = urlsplit(url)
    path = unquote_to_bytes(parts.path)
    if parts.netloc not in ("", "localhost") or b"\0" in path:
        raise RefusedUrlError(f"{url!a} does not name a file on this machine")
    return Path(os.fsdecode(path))
