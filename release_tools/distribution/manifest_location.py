"""Where a manifest is, what its URL says, and where the release it describes is found."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

from platform_common.errors import AccessError, PlatformError
from release_tools.distribution.layout import (
    MANIFEST_LIMIT_BYTES,
    MANIFEST_NAME,
    SIGNATURE_SUFFIX,
    UNSIGNED_SUFFIX,
)
from release_tools.manifest.document import Artefact, Manifest
from release_tools.manifest.vocabulary import CHANNELS, REFERENCE_FORMATS
from release_tools.origins.origin import FETCHED_SCHEMES, Origin, read_small
from release_tools.origins.stream import MissingError
from release_tools.origins.urls import local_path, show_url, url_filename, without_secrets


class UnsignedError(PlatformError):
    """The release is not signed yet."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} is not signed and must not be trusted",
            hint="Sign it with: release-tools sign manifest.json.unsigned",
        )


@dataclass(frozen=True, slots=True)
class ManifestLocation:
    """The URL of a manifest: what its parts say, and where its own URLs lead."""

    url: str

    def __str__(self) -> str:
        return show_url(self.url)

    @property
    def public_url(self) -> str:
        """The URL without user name, password, query and fragment."""
        return without_secrets(self.url)

    @property
    def filename(self) -> str:
        """The manifest's own file name."""
        return url_filename(self.url)

    @property
    def channel(self) -> str | None:
        """The channel that the manifest's folder is named after, if any."""
        folder = urlsplit(self.url).path.rpartition("/")[0].rpartition("/")[2]
        return folder if folder in CHANNELS else None

    @property
    def local_folder(self) -> Path | None:
        """The manifest's folder if it is on this machine, else None."""
        return local_path(self.url).parent if urlsplit(self.url).scheme == "file" else None

    @property
    def signature_url(self) -> str:
        """The URL of the manifest's detached signature."""
        parts = urlsplit(self.url)
        return parts._replace(path=parts.path + SIGNATURE_SUFFIX).geturl()

    def resolve(self, url: str) -> str:
        """Return the absolute URL that `url` means here (docs/reference/manifest.md, "URLs").

        A relative one is relative to the manifest's folder, whatever the scheme; an absolute
        one is returned unchanged.
        """
        if urlsplit(url).scheme:
            return url
        parts = urlsplit(self.url)
        # urljoin joins only the schemes that it knows, so http stands in for ours.
        joined = urljoin(parts._replace(scheme="http").geturl(), url)
        return parts.scheme + joined.removeprefix("http")

    def leaves_folder(self, url: str) -> bool:
        """Whether a relative `url` leads out of the manifest's folder."""
        if urlsplit(url).scheme:
            return False
        # A server may decode the path once more, and some take a backslash for a slash.
        path = re.sub("%2e", ".", urlsplit(url).path, flags=re.IGNORECASE)
        climbs = ".." in re.split(r"[/\\]|%2f|%5c", path, flags=re.IGNORECASE)
        return climbs or not self.resolve(url).startswith(self.resolve("."))

    def artefact_url(self, manifest: Manifest, artefact: Artefact) -> str:
        """Return where the bytes of `artefact` are.

        Its `url` if that can be fetched and is not a reference, else
        `<release_version>/<filename>` beside the manifest.
        """
        if artefact.url and artefact.format not in REFERENCE_FORMATS:
            resolved = self.resolve(artefact.url)
            if urlsplit(resolved).scheme in FETCHED_SCHEMES:
                return resolved
        return self.resolve(quote(f"{manifest.release_version}/{artefact.filename}"))


@dataclass(frozen=True, slots=True)
class FoundManifest:
    """A manifest that exists, with its content or read error if finding it meant fetching it."""

    location: ManifestLocation
    fetched: bytes | AccessError | None = None

    def read(self, origin: Origin) -> bytes:
        """Return the content, fetching it only if finding it did not; raises `AccessError`."""
        if isinstance(self.fetched, AccessError):
            raise self.fetched
        if self.fetched is None:
            return origin.read(self.location.url, MANIFEST_LIMIT_BYTES)
        return self.fetched


def find_manifests(
    location: str, origin: Origin, *, unsigned: bool = False
) -> Iterator[FoundManifest]:
    """Yield the manifests at a manifest, a channel directory or a distribution root.

    Unsigned manifests are found only if no signed one exists; unless `unsigned`, they raise
    `UnsignedError`. Raises `AccessError` if there is no manifest.
    """
    if "://" not in location and not location.lower().startswith("file:"):
        yield from _local_manifests(Path(location), unsigned)
        return
    try:
        scheme = urlsplit(location).scheme
    except ValueError as error:
        raise AccessError("the location is not a valid URL") from error
    if scheme not in FETCHED_SCHEMES:
        raise AccessError(f"{location!a}: {scheme}: URLs are not supported")
    if scheme == "file":
        yield from _local_manifests(local_path(location), unsigned)
    else:
        yield from _remote_manifests(location, origin, unsigned)


def _remote_manifests(location: str, origin: Origin, unsigned: bool) -> Iterator[FoundManifest]:
    parts = urlsplit(location)
    folder = parts.path.rstrip("/")
    name = folder.rpartition("/")[2]
    if name.endswith(UNSIGNED_SUFFIX) and not unsigned:
        raise UnsignedError(show_url(location))
    if name.endswith((".json", UNSIGNED_SUFFIX)):
        yield FoundManifest(ManifestLocation(location))
        return

    def manifest_in(subfolder: str) -> ManifestLocation:
        path = f"{folder}/{subfolder}{MANIFEST_NAME}"
        return ManifestLocation(parts._replace(path=path, fragment="").geturl())

    if name in CHANNELS:
        yield FoundManifest(manifest_in(""))
        return
    root = _fetch(manifest_in(""), origin)
    if root is not None:
        yield root
        return
    any_channel = False
    for channel in CHANNELS:
        in_channel = manifest_in(f"{channel}/")
        try:
            found = _fetch(in_channel, origin)
        except AccessError as error:
            # Reported for this channel, so that it does not hide the other ones.
            found = FoundManifest(in_channel, error)
        if found is not None:
            any_channel = True
            yield found
    if not any_channel:
        raise _no_manifest(show_url(location))


def _fetch(location: ManifestLocation, origin: Origin) -> FoundManifest | None:
    """Fetch a manifest, or return None if it does not exist.

    Raises `AccessError` if it cannot be opened; a later error is kept as its content.
    """
    began_s = time.monotonic()
    try:
        with origin.open(location.url) as stream:
            try:
                data = read_small(stream, location.url, MANIFEST_LIMIT_BYTES, began_s)
            except AccessError as error:
                return FoundManifest(location, error)
    except MissingError:
        return None
    return FoundManifest(location, data)


def _local_manifests(path: Path, unsigned: bool) -> Iterator[FoundManifest]:
    # Links are not followed, because the folder's own name says which channel it is. abspath
    # keeps two leading slashes, which would become a host name in a URL.
    path = Path("/" + os.path.abspath(path).lstrip("/"))  # noqa: PTH100 - resolve follows links
    if not path.exists():
        raise AccessError(f"{path} does not exist")
    manifests = [path] if path.is_file() else _manifests_below(path, MANIFEST_NAME)
    manifests = manifests or _manifests_below(path, MANIFEST_NAME + UNSIGNED_SUFFIX)
    if not manifests:
        raise _no_manifest(str(path))
    if manifests[0].name.endswith(UNSIGNED_SUFFIX) and not unsigned:
        raise UnsignedError(str(manifests[0]))
    for manifest in manifests:
        yield FoundManifest(ManifestLocation(manifest.as_uri()))


def _manifests_below(path: Path, name: str) -> list[Path]:
    """Return the manifest of the folder itself, else those of the channels in it."""
    if (path / name).is_file():
        return [path / name]
    in_channels = [path / channel / name for channel in CHANNELS]
    return [manifest for manifest in in_channels if manifest.is_file()]


def _no_manifest(where: str) -> AccessError:
    return AccessError(f"{where} holds no {MANIFEST_NAME}, and no channel has one either")
