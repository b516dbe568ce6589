"""Where things lie in a distribution (docs/reference/manifest.md)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from platform_common.errors import PlatformError, UnreadableError
from release_tools.manifest.document import Artefact, Manifest
from release_tools.manifest.vocabulary import CHANNELS, REFERENCE_FORMATS
from release_tools.origins.origin import FETCHED_SCHEMES, Origin, path_of
from release_tools.origins.stream import MissingError, show_url
from release_tools.origins.urls import resolve

MANIFEST_NAME = "manifest.json"
UNSIGNED_SUFFIX = ".unsigned"
SIGNATURE_SUFFIX = ".minisig"
MANIFEST_LIMIT_BYTES = 16 << 20
SIGNATURE_LIMIT_BYTES = 64 << 10
REFERENCE_LIMIT_BYTES = 4 << 10


def manifests_at(location: str, origin: Origin, *, unsigned: bool = False) -> list[str]:
    """The URLs of the manifests at a manifest, a channel directory or a distribution root.

    Raises `UnreadableError` where there is none, `UnsignedError` where the only
    one is unsigned, unless `unsigned` asks for it.
    """
    if "://" not in location and not location.lower().startswith("file:"):
        return _local_manifests(Path(location), unsigned)
    try:
        parts = urlsplit(location)
    except ValueError as error:
        raise UnreadableError("the location is no valid URL") from error
    if parts.scheme not in FETCHED_SCHEMES:
        raise UnreadableError(f"{location!a}: nothing here can read a {parts.scheme}: address")
    if parts.scheme == "file":
        return _local_manifests(path_of(location), unsigned)
    base = parts.path.rstrip("/")
    last = base.rpartition("/")[2]
    if last.endswith(UNSIGNED_SUFFIX) and not unsigned:
        raise UnsignedError(show_url(location))
    if last.endswith((".json", UNSIGNED_SUFFIX)):
        return [location]
    own, *others = (
        parts._replace(path=f"{base}/{path}{MANIFEST_NAME}", fragment="").geturl()
        for path in ("", *(f"{channel}/" for channel in CHANNELS))
    )
    if last in CHANNELS or _exists(origin, own):
        return [own]
    # What cannot be read is a finding of its channel and hides nothing of the others.
    found = [url for url in others if _exists(origin, url, unreadable=True)]
    if not found:
        raise UnreadableError(
            f"{show_url(location)} holds no {MANIFEST_NAME}, and no channel has one either"
        )
    return found


class UnsignedError(PlatformError):
    """The release is not signed yet."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} is not signed and must not be trusted",
            hint="Sign it with: release-tools sign manifest.json.unsigned",
        )


def _exists(origin: Origin, url: str, *, unreadable: bool = False) -> bool:
    """Whether there is such a file; with `unreadable`, one that cannot be read is one."""
    try:
        with origin.open(url):
            return True
    except MissingError:
        return False
    except UnreadableError:
        if unreadable:
            return True
        raise


def _local_manifests(path: Path, unsigned: bool) -> list[str]:
    # A link is not followed here: the name of a channel's folder says which channel it is.
    # Of two slashes in front, which abspath keeps, a URL would make a host.
    path = Path("/" + os.path.abspath(path).lstrip("/"))  # noqa: PTH100 - others follow links
    if path.is_file():
        if path.name.endswith(UNSIGNED_SUFFIX) and not unsigned:
            raise UnsignedError(str(path))
        return [path.as_uri()]
    folders = [path, *(path / channel for channel in CHANNELS)]
    found = [folder / MANIFEST_NAME for folder in folders if (folder / MANIFEST_NAME).is_file()]
    if found:
        own = found[0].parent == path
        return [manifest.as_uri() for manifest in (found[:1] if own else found)]
    waiting = [folder / (MANIFEST_NAME + UNSIGNED_SUFFIX) for folder in folders]
    waiting = [manifest for manifest in waiting if manifest.is_file()]
    if waiting and not unsigned:
        raise UnsignedError(str(waiting[0]))
    if waiting:
        return [manifest.as_uri() for manifest in waiting]
    if not path.exists():
        raise UnreadableError(f"{path} does not exist")
    raise UnreadableError(f"{path} holds no {MANIFEST_NAME}, and no channel in it has one either")


def artefact_url(manifest_url: str, manifest: Manifest, artefact: Artefact) -> str:
    """Where the bytes of `artefact` lie.

    Its `url`, if that can be fetched and is no reference to something elsewhere;
    else `<release_version>/<filename>` beside the manifest.
    """
    url = artefact.url
    if url and artefact.format not in REFERENCE_FORMATS:
        resolved = resolve(manifest_url, url)
        if urlsplit(resolved).scheme in FETCHED_SCHEMES:
            return resolved
    return resolve(manifest_url, quote(f"{manifest.release_version}/{artefact.filename}"))


def unexpected_files(folder: Path, manifest: Manifest) -> Iterator[str]:
    """The files in the release's own folder that the manifest does not list, from `folder`."""
    release = folder / manifest.release_version.text
    expected = {artefact.filename for artefact in manifest.artefacts}
    expected |= {f"{name}{SIGNATURE_SUFFIX}" for name in expected}
    expected |= {
        unquote(urlsplit(url).path.rpartition("/")[2])
        for artefact in manifest.artefacts
        for url in (artefact.minisig_url, artefact.url or "")
    }
    try:
        names = sorted(path.name for path in release.iterdir())
    except OSError:
        return
    for name in names:
        if name not in expected:
            yield f"{manifest.release_version}/{name}"
