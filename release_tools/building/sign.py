"""Signing existing files: any file, or a release that was built without a key."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from platform_common.errors import access_error
from platform_common.storage.atomic_write import write_atomic
from platform_common.storage.safe_read import read_bounded
from platform_common.storage.stale_files import remove_left_overs
from release_tools.copy_and_digest import digest_file
from release_tools.distribution.layout import (
    MANIFEST_LIMIT_BYTES,
    MANIFEST_NAME,
    SIGNATURE_SUFFIX,
    UNSIGNED_SUFFIX,
)
from release_tools.distribution.publish import (
    DistributionError,
    distribution_lock,
    publish_manifest,
)
from release_tools.hashing import Digests
from release_tools.left_overs import nothing_left_in
from release_tools.manifest.document import Manifest
from release_tools.manifest.parser import parse
from release_tools.manifest.vocabulary import CHANNELS
from release_tools.parallel import SharedProgress, run_parallel
from release_tools.progress import StartProgress
from release_tools.signing.secret_key import SecretKey, sign
from release_tools.signing.trusted_comment import render_comment


def sign_paths(
    paths: Sequence[Path],
    key: SecretKey,
    timestamp: int,
    start_progress: StartProgress,
) -> list[Path]:
    """Sign every path and return the signature files written, in order.

    A `manifest.json.unsigned` becomes `manifest.json` with its signature, and its artefacts are
    signed too. Everything is read and checked before anything is written. Raises
    `DistributionError`, `ManifestError` and `AccessError`.
    """
    manifests = [path for path in paths if _is_unsigned_manifest(path)]
    with contextlib.ExitStack() as locks, nothing_left_in(*{path.parent for path in paths}):
        # Two releases of the same distribution share one lock.
        for output in {(path.parent / os.pardir).resolve() for path in manifests}:
            locks.enter_context(distribution_lock(output))
        return _sign_all(paths, key, timestamp, start_progress)


def _sign_all(
    paths: Sequence[Path], key: SecretKey, timestamp: int, start_progress: StartProgress
) -> list[Path]:
    releases = {path: _unsigned_release(path) for path in paths if _is_unsigned_manifest(path)}
    wanted: dict[Path, Manifest | None] = {}
    for path in paths:
        release = releases.get(path)
        if release is None:
            wanted[path] = None
        else:
            folder = path.parent / release.release_version.text
            wanted |= {folder / artefact.filename: release for artefact in release.artefacts}
    digests = dict(zip(wanted, _digest_all(list(wanted), start_progress), strict=True))
    for path, release in releases.items():
        _require_listed_bytes(path.parent, release, digests)
        for folder in (path.parent, path.parent / release.release_version.text):
            remove_left_overs(folder)
    with nothing_left_in(*{path.parent for path in wanted}):
        return _write_all(wanted, releases, digests, key, timestamp)


def _write_all(
    wanted: Mapping[Path, Manifest | None],
    releases: Mapping[Path, Manifest],
    digests: Mapping[Path, Digests],
    key: SecretKey,
    timestamp: int,
) -> list[Path]:
    signatures = {}
    for path, release in wanted.items():
        comment = render_comment(path.name, timestamp, release)
        signature = sign(key, digests[path].blake2b, comment).render()
        signatures[path.with_name(path.name + SIGNATURE_SUFFIX)] = signature
    for path, signature in signatures.items():
        write_atomic(path, signature)
    written = list(signatures)
    for path, release in releases.items():
        manifest = publish_manifest(path.parent, release, key, timestamp)
        written.append(manifest.with_name(manifest.name + SIGNATURE_SUFFIX))
    return written


def _is_unsigned_manifest(path: Path) -> bool:
    """Whether `path` is the manifest of a release that is not signed yet."""
    return path.name == MANIFEST_NAME + UNSIGNED_SUFFIX


def _unsigned_release(path: Path) -> Manifest:
    release = parse(read_bounded(path, MANIFEST_LIMIT_BYTES))
    folder = path.resolve().parent.name
    if folder in CHANNELS and folder != release.channel:
        raise DistributionError(
            [f"{path} is for the channel {release.channel} but is in the folder {folder}"]
        )
    return release


def _digest_all(paths: Sequence[Path], start_progress: StartProgress) -> list[Digests]:
    sizes = {}
    for path in paths:
        with access_error(path):
            sizes[path] = path.stat().st_size
    progress = SharedProgress(start_progress(sum(sizes.values())))

    def work(path: Path, paired: bool) -> Digests:
        return digest_file(path, paired=paired, on_chunk=progress)

    return run_parallel(work, paths, sizes.__getitem__, progress)


def _require_listed_bytes(
    channel_dir: Path, release: Manifest, digests: Mapping[Path, Digests]
) -> None:
    problems = []
    for artefact in release.artefacts:
        path = channel_dir / release.release_version.text / artefact.filename
        if (digests[path].size, digests[path].sha256) != (artefact.size_bytes, artefact.sha256):
            problems.append(f"{path} is not the file that the manifest lists")
    if problems:
        raise DistributionError(problems, hint="Build the release again.")
