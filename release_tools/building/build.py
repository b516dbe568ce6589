"""Building a release from a folder of artefacts.

Everything is prepared in a hidden folder and renamed into place, and the manifest is written
last: until then the channel serves its previous release.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from platform_common.errors import access_error
from platform_common.storage.atomic_write import fsync_directory, write_atomic
from release_tools.building.naming import ArtefactName, NamingError, parse_name
from release_tools.copy_and_digest import copy_and_digest
from release_tools.distribution.layout import REFERENCE_LIMIT_BYTES, SIGNATURE_SUFFIX
from release_tools.distribution.publish import (
    DistributionError,
    channel_folder,
    distribution_lock,
    publish_manifest,
    publish_staged,
    require_same_artefacts,
    staging_folder,
)
from release_tools.hashing import Digests
from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import Artefact, Manifest, render
from release_tools.manifest.parser import parse
from release_tools.manifest.vocabulary import REFERENCE_FORMATS
from release_tools.parallel import SharedProgress, run_parallel
from release_tools.progress import StartProgress
from release_tools.signing.secret_key import SecretKey, sign
from release_tools.signing.trusted_comment import render_comment

_REFERENCES = {
    "oci": (re.compile(r"oci://[!-~]+@sha256:[a-f0-9]{64}"), "oci://registry/name@sha256:<64 hex>"),
    "do-snapshot": (re.compile(r"do://snapshots/[A-Za-z0-9_-]+"), "do://snapshots/<id>"),
}


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to build; `timestamp` is the time of the release in Unix seconds."""

    artefact_dir: Path
    output: Path
    version: CalVer
    channel: str
    profiles: Sequence[str]
    targets: Mapping[str, str]
    timestamp: int
    tracker: Mapping[str, str] | None = None
    wizard_version: str | None = None
    chat_ui_version: str | None = None
    jobs: int | None = None


def build_release(
    request: BuildRequest, key: SecretKey | None, start_progress: StartProgress
) -> tuple[Manifest, Path]:
    """Lay out, describe and, with `key`, sign the release; return the manifest and its path.

    Raises `DistributionError` for the artefacts, `ManifestError` for options that give an invalid
    manifest, and `AccessError` if reading or writing fails; the distribution is then
    unchanged.
    """
    names = _artefact_names(request)
    channel_dir = request.output / request.channel
    with (
        channel_folder(channel_dir),
        distribution_lock(request.output),
        staging_folder(channel_dir, request.version) as staging,
    ):
        digests = _copy_all(request, names, staging, start_progress)
        manifest = _manifest(request, names, digests, staging)
        data = render(manifest)
        # Never publish what we would refuse to verify.
        parse(data)
        if key is not None:
            _sign_all(key, manifest, digests, staging, request.timestamp)
        # The files' names must be on disk before the folder becomes visible.
        fsync_directory(staging)
        version_dir = channel_dir / request.version.text
        require_same_artefacts(version_dir, digests)
        publish_staged(staging, version_dir)
        return manifest, publish_manifest(channel_dir, manifest, key, request.timestamp)


def _artefact_names(request: BuildRequest) -> dict[str, ArtefactName]:
    """Parse the name of every file in the folder; raises `DistributionError` with all problems."""
    with access_error(request.artefact_dir):
        entries = sorted(os.scandir(request.artefact_dir), key=lambda entry: entry.name)
    if not entries:
        raise DistributionError([f"{request.artefact_dir} is empty: there is nothing to release"])
    names: dict[str, ArtefactName] = {}
    problems: list[str] = []
    hint = ""
    for entry in entries:
        info = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(info.st_mode):
            problems.append(f"{entry.name!a} is not a regular file")
        elif not info.st_size:
            problems.append(f"{entry.name!a} is empty")
        else:
            try:
                names[entry.name] = parse_name(
                    entry.name,
                    version=request.version,
                    channel=request.channel,
                    profiles=request.profiles,
                    targets=request.targets,
                )
            except NamingError as error:
                problems.append(error.message)
                hint = hint or error.hint
    if problems:
        raise DistributionError(problems, hint=hint)
    return names


def _copy_all(
    request: BuildRequest,
    names: Mapping[str, ArtefactName],
    staging: Path,
    start_progress: StartProgress,
) -> dict[str, Digests]:
    sizes = {name: (request.artefact_dir / name).stat().st_size for name in names}
    progress = SharedProgress(start_progress(sum(sizes.values())))

    def work(name: str, paired: bool) -> Digests:
        source = request.artefact_dir / name
        return copy_and_digest(source, staging / name, paired=paired, on_chunk=progress)

    results = run_parallel(work, list(sizes), sizes.__getitem__, progress, request.jobs)
    return dict(zip(sizes, results, strict=True))


def _manifest(
    request: BuildRequest,
    names: Mapping[str, ArtefactName],
    digests: Mapping[str, Digests],
    staging: Path,
) -> Manifest:
    artefacts = []
    for filename, name in names.items():
        path = f"{request.version}/{filename}"
        reference = name.format in REFERENCE_FORMATS
        artefacts.append(
            Artefact(
                target=name.target,
                profile=name.profile,
                filename=filename,
                format=name.format,
                size_bytes=digests[filename].size,
                sha256=digests[filename].sha256,
                minisig_url=path + SIGNATURE_SUFFIX,
                url=_reference(staging / filename, name.format) if reference else path,
            )
        )
    artefacts.sort(key=lambda artefact: (artefact.profile, artefact.target, artefact.format))
    return Manifest(
        release_version=request.version,
        channel=request.channel,
        released_at=datetime.fromtimestamp(request.timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        artefacts=tuple(artefacts),
        tracker=request.tracker or None,
        wizard_version=request.wizard_version,
        chat_ui_version=request.chat_ui_version,
    )


def _reference(path: Path, form: str) -> str:
    with path.open("rb") as file:
        data = file.read(REFERENCE_LIMIT_BYTES + 1)
    text = data.decode("ascii", "replace").removesuffix("\n")
    pattern, shape = _REFERENCES[form]
    if len(data) > REFERENCE_LIMIT_BYTES or not pattern.fullmatch(text):
        raise DistributionError(
            [f"{path.name!a} must hold one reference and nothing else"],
            hint=f"It must be one line of the form {shape}.",
        )
    return text


def _sign_all(
    key: SecretKey, manifest: Manifest, digests: Mapping[str, Digests], folder: Path, timestamp: int
) -> None:
    for name, digest in digests.items():
        comment = render_comment(name, timestamp, manifest)
        write_atomic(
            folder / (name + SIGNATURE_SUFFIX), sign(key, digest.blake2b, comment).render()
        )
