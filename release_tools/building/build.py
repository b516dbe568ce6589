"""Building a release from a folder of artefacts.

Everything is made in a hidden folder beside its place and renamed into it; the
manifest comes last. Until then the channel serves what it served before.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from platform_common.errors import UnreadableError
from platform_common.storage.atomic_write import (
    fsync_directory,
    write_atomic,
)
from release_tools.building.copy_and_digest import place
from release_tools.building.naming import ArtefactName, NamingError, parse_name
from release_tools.distribution.layout import (
    REFERENCE_LIMIT_BYTES,
    SIGNATURE_SUFFIX,
)
from release_tools.distribution.publish import (
    BuildError,
    locked,
    made_folder,
    move_in,
    publish_manifest,
    refuse_other_bytes,
    staging_folder,
)
from release_tools.hashing import Digests, cores
from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import Artefact, Manifest, parse, render
from release_tools.manifest.vocabulary import REFERENCE_FORMATS
from release_tools.parallel import Pace, side_by_side
from release_tools.progress import StartProgress
from release_tools.signing.secret_key import SecretKey, sign
from release_tools.verifying.policy import render_comment

_REFERENCES = {
    "oci": (re.compile(r"oci://[!-~]+@sha256:[a-f0-9]{64}"), "oci://registry/name@sha256:<64 hex>"),
    "do-snapshot": (re.compile(r"do://snapshots/[A-Za-z0-9_-]+"), "do://snapshots/<id>"),
}


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to build; `timestamp` is the release's moment in Unix seconds."""

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


@dataclass(frozen=True, slots=True)
class BuiltRelease:
    """What was built, and the manifest's path, signed or `.unsigned`."""

    manifest: Manifest
    manifest_path: Path
    signed_by: SecretKey | None


def build_release(
    request: BuildRequest,
    key: SecretKey | None,
    start_progress: StartProgress,
) -> BuiltRelease:
    """Lay out, describe and, with `key`, sign the release; see the module.

    Raises `BuildError` for the artefacts, `ManifestError` for options that make
    no valid manifest, `UnreadableError` where reading or writing fails; the
    distribution then is as it was.
    """
    names = _artefact_names(request)
    channel_dir = request.output / request.channel
    with (
        made_folder(channel_dir),
        locked(request.output),
        staging_folder(channel_dir, request.version) as staging,
    ):
        digests = _place_all(request, names, staging, start_progress)
        manifest = _manifest(request, names, digests, staging)
        data = render(manifest)
        # We never publish what we would refuse.
        parse(data)
        if key is not None:
            _sign_all(key, manifest, digests, staging, request.timestamp)
        fsync_directory(staging)
        version_dir = channel_dir / request.version.text
        refuse_other_bytes(version_dir, digests)
        move_in(staging, version_dir)
        return BuiltRelease(
            manifest, publish_manifest(channel_dir, manifest, key, request.timestamp), key
        )


def _artefact_names(request: BuildRequest) -> dict[str, ArtefactName]:
    """File name to meaning for every file of the folder; raises `BuildError` for any other."""
    try:
        entries = sorted(os.scandir(request.artefact_dir), key=lambda entry: entry.name)
    except OSError as error:
        raise UnreadableError.of(request.artefact_dir, error) from error
    if not entries:
        raise BuildError([f"{request.artefact_dir} is empty: there is nothing to release"])
    names: dict[str, ArtefactName] = {}
    problems: dict[str, str] = {}
    for entry in entries:
        info = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(info.st_mode):
            problems[f"{entry.name!a} is not a regular file"] = ""
        elif not info.st_size:
            problems[f"{entry.name!a} is empty"] = ""
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
                problems[error.message] = error.hint
    if problems:
        raise BuildError(list(problems), hint=next(filter(None, problems.values()), ""))
    return names


def _place_all(
    request: BuildRequest,
    names: Mapping[str, ArtefactName],
    staging: Path,
    start_progress: StartProgress,
) -> dict[str, Digests]:
    sizes = {name: (request.artefact_dir / name).stat().st_size for name in names}
    pace = Pace(start_progress(sum(sizes.values())))

    def work(name: str, paired: bool) -> Digests:
        return place(request.artefact_dir / name, staging / name, paired=paired, on_chunk=pace)

    results = side_by_side(
        work, list(names), jobs=request.jobs or cores(), pace=pace, size_of=sizes.__getitem__
    )
    return dict(zip(names, results, strict=True))


def _manifest(
    request: BuildRequest,
    names: Mapping[str, ArtefactName],
    digests: Mapping[str, Digests],
    staging: Path,
) -> Manifest:
    artefacts = []
    for filename, name in sorted(
        names.items(), key=lambda item: (item[1].profile, item[1].target, item[1].format)
    ):
        path = f"{request.version}/{filename}"
        artefacts.append(
            Artefact(
                target=name.target,
                profile=name.profile,
                filename=filename,
                format=name.format,
                size_bytes=digests[filename].size,
                sha256=digests[filename].sha256,
                minisig_url=path + SIGNATURE_SUFFIX,
                url=_reference(staging / filename, name.format)
                if name.format in REFERENCE_FORMATS
                else path,
            )
        )
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
        raise BuildError(
            [f"{path.name!a} must hold one reference and nothing else"],
            hint=f"Write {shape} into it, on one line.",
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
