"""Publishing a release so that readers see either the previous release or the new one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from platform_common.errors import AccessError, PlatformError, access_error
from platform_common.storage.atomic_write import (
    fsync_directory,
    write_atomic,
    write_atomic_together,
)
from platform_common.storage.stale_files import (
    remove_left_overs,
    signals_held,
    temporary_name,
)
from release_tools.copy_and_digest import digest_file
from release_tools.distribution.layout import MANIFEST_NAME, SIGNATURE_SUFFIX, UNSIGNED_SUFFIX
from release_tools.hashing import Digests
from release_tools.left_overs import nothing_left_in
from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import Manifest, render
from release_tools.signing.minisign import prehash
from release_tools.signing.secret_key import SecretKey, sign
from release_tools.signing.trusted_comment import render_comment


class DistributionError(PlatformError):
    """The artefact folder or the distribution is unsuitable; `problems` lists every reason."""

    def __init__(self, problems: Sequence[str], *, hint: str = "") -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems), hint=hint)


@contextlib.contextmanager
def channel_folder(channel_dir: Path) -> Iterator[None]:
    """Create the channel's folder if needed; if the block fails, remove what was created."""
    missing: list[Path] = []
    try:
        missing = [path for path in (channel_dir, *channel_dir.parents) if not path.exists()]
        channel_dir.mkdir(parents=True, exist_ok=True)
        with nothing_left_in(channel_dir):
            yield
    except BaseException as error:
        # Deepest first; rmdir fails at the first folder that something else uses by now.
        with signals_held(), contextlib.suppress(OSError):
            for path in missing:
                path.rmdir()
        if isinstance(error, OSError):
            raise AccessError.of(channel_dir, error) from error
        raise


@contextlib.contextmanager
def distribution_lock(output: Path) -> Iterator[None]:
    """Lock the distribution, so that only one process writes to it."""
    # flock on the folder itself ends with the process and leaves no lock file behind.
    with access_error(output):
        descriptor = os.open(output, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(descriptor, output)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, output: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno == errno.EWOULDBLOCK:
            raise DistributionError(
                [f"another build is running in {output}"], hint="Try again when it is done."
            ) from error
        raise AccessError.of(output, error) from error


@contextlib.contextmanager
def staging_folder(channel_dir: Path, version: CalVer) -> Iterator[Path]:
    """Make a hidden folder for the block; also remove those that killed builds left behind."""
    staging = channel_dir / temporary_name(version.text)
    try:
        remove_left_overs(channel_dir)
        staging.mkdir()
        yield staging
    except OSError as error:
        # A path inside the hidden folder would mean nothing to the user.
        hidden = error.filename is None or str(error.filename).startswith(str(staging))
        raise AccessError.of(channel_dir if hidden else error.filename, error) from error
    finally:
        with signals_held():
            shutil.rmtree(staging, ignore_errors=True)


def require_same_artefacts(version_dir: Path, digests: Mapping[str, Digests]) -> None:
    """Raise `DistributionError` if this version already exists with different artefacts."""
    if not version_dir.exists():
        return
    present = {path.name for path in version_dir.iterdir()}
    present -= {name + SIGNATURE_SUFFIX for name in digests}
    problems = [
        f"{version_dir / name} is not part of this build" for name in present - set(digests)
    ]
    problems += [f"{version_dir} has no {name}" for name in set(digests) - present]
    for name in sorted(present & set(digests)):
        if digest_file(version_dir / name) != digests[name]:
            problems.append(f"{version_dir / name} has different bytes")
    if problems:
        raise DistributionError(
            [f"{version_dir.name} already exists: {'; '.join(sorted(problems))}"],
            hint="A version is never changed: build a new one.",
        )


def publish_staged(staging: Path, version_dir: Path) -> None:
    """Move the staged files into place; an existing version gets only the new signatures."""
    if not version_dir.exists():
        staging.rename(version_dir)
    else:
        for path in sorted(staging.glob(f"*{SIGNATURE_SUFFIX}")):
            path.replace(version_dir / path.name)
        fsync_directory(version_dir)
    fsync_directory(version_dir.parent)


def publish_manifest(
    channel_dir: Path, manifest: Manifest, key: SecretKey | None, timestamp: int
) -> Path:
    """Write the manifest and its signature, or without `key` the unsigned manifest.

    Returns the manifest's path. The signature is renamed first: a reader between the two
    renames sees a mismatch, which it retries. Raises `AccessError`.
    """
    data = render(manifest)
    path = channel_dir / MANIFEST_NAME
    unsigned = channel_dir / (MANIFEST_NAME + UNSIGNED_SUFFIX)
    if key is None:
        write_atomic(unsigned, data)
        return unsigned
    comment = render_comment(MANIFEST_NAME, timestamp, manifest)
    signature = sign(key, prehash(data), comment).render()
    write_atomic_together({channel_dir / (MANIFEST_NAME + SIGNATURE_SUFFIX): signature, path: data})
    unsigned.unlink(missing_ok=True)
    return path
