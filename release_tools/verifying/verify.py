"""Verifying releases: this module alone decides the order of the checks.

The signature over the manifest's exact bytes comes first, then its schema, then the verify
policy, then every artefact.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from platform_common.errors import AccessError
from release_tools.distribution.layout import SIGNATURE_LIMIT_BYTES, unexpected_files
from release_tools.distribution.manifest_location import FoundManifest, find_manifests
from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import Artefact, Manifest, ManifestError, SchemaVersionError
from release_tools.manifest.parser import parse
from release_tools.origins.origin import Origin
from release_tools.origins.stream import MissingError
from release_tools.parallel import SharedProgress, run_parallel
from release_tools.progress import StartProgress
from release_tools.signing.minisign import (
    FormatError,
    PublicKey,
    Signature,
    SignatureError,
    prehash,
)
from release_tools.verifying.artefact_check import ArtefactCheck
from release_tools.verifying.policy import Finding, VerifyPolicy, check_comment, check_manifest
from release_tools.verifying.report import CheckedArtefact, ReleaseReport, unreadable
from release_tools.verifying.verifier_choice import open_verifier
from release_tools.verifying.verifier_protocol import Verifier

# A publication renames its two files at once; a cache before the server may take longer.
_PAIR_RETRY_PAUSES_S = (1.0, 3.0)


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to verify, and what to require of it; None requires nothing.

    `max_age` is in days, `timeout` in seconds. `target` and `profile` select the artefacts to
    read; `manifest_only` reads none.
    """

    location: str
    keys: Sequence[PublicKey]
    channel: str | None = None
    target: str | None = None
    profile: str | None = None
    manifest_only: bool = False
    verifier: str = "native"
    not_older_than: CalVer | None = None
    max_age: int | None = None
    timeout: float = 30.0
    jobs: int | None = None

    def selects(self, artefact: Artefact) -> bool:
        """Whether `artefact` has the requested target and profile."""
        return self.target in (None, artefact.target) and self.profile in (None, artefact.profile)

    @property
    def selection(self) -> str:
        """The requested target and profile, for a message."""
        return ", ".join(word for word in (self.target, self.profile) if word)


def verify_location(request: VerifyRequest, start_progress: StartProgress) -> list[ReleaseReport]:
    """Verify every release at the location and return a report on each.

    Raises `AccessError` if there is no manifest, and `UnsignedError` if the only one is
    not signed.
    """
    origin = Origin(request.timeout)
    now = datetime.now(UTC)
    with open_verifier(request.verifier, request.keys) as verifier:
        return [
            _Verification(request, found, origin, verifier, now).run(start_progress)
            for found in find_manifests(request.location, origin)
        ]


@dataclass(frozen=True, slots=True)
class _Verification:
    request: VerifyRequest
    found: FoundManifest
    origin: Origin
    verifier: Verifier
    now: datetime

    def run(self, start_progress: StartProgress) -> ReleaseReport:
        location = self.found.location
        report = ReleaseReport(location)
        pair = self._signed_pair()
        if isinstance(pair, Finding):
            report.findings.append(pair)
            return report
        data, report.signature = pair
        try:
            report.manifest = parse(data)
        except SchemaVersionError as error:
            message = f"{error.message}: {error.hint}"
            report.findings.append(Finding("E_SCHEMA_VERSION", str(location), message))
        except ManifestError as error:
            report.findings += [
                Finding("E_SCHEMA", str(location), problem) for problem in error.problems
            ]
        else:
            self._check_manifest(report, report.signature, report.manifest)
            self._check_artefacts(report, report.manifest, start_progress)
        return report

    def _signed_pair(self) -> tuple[bytes, Signature] | Finding:
        """Return the manifest's bytes and its valid signature, or the finding against them.

        A server cannot replace the two files at the same moment, so a pair from a server that
        does not match is fetched again.
        """
        pair = self._read_pair(self.found)
        if self.found.location.local_folder is not None:
            return pair
        for pause_s in _PAIR_RETRY_PAUSES_S:
            if not isinstance(pair, Finding) or pair.code not in ("E_SIG", "E_MISSING"):
                break
            time.sleep(pause_s)
            pair = self._read_pair(FoundManifest(self.found.location))
        return pair

    def _read_pair(self, found: FoundManifest) -> tuple[bytes, Signature] | Finding:
        location = found.location
        where = str(location)
        try:
            data = found.read(self.origin)
        except AccessError as error:
            return unreadable(error, where)
        try:
            signature_data = self.origin.read(location.signature_url, SIGNATURE_LIMIT_BYTES)
            signature = Signature.parse(signature_data)
            with self.verifier.check(signature_data, signature) as check:
                check.update(memoryview(data))
                check.finish(prehash(data))
        except MissingError:
            return Finding("E_MISSING", where, "the manifest has no signature beside it")
        except FormatError as error:
            return Finding("E_SIG", where, error.message)
        except SignatureError as error:
            return Finding(error.code, where, error.message)
        except AccessError as error:
            return unreadable(error, where)
        return data, signature

    def _check_manifest(
        self, report: ReleaseReport, signature: Signature, manifest: Manifest
    ) -> None:
        request, location = self.request, self.found.location
        policy = VerifyPolicy(
            now=self.now,
            channel=request.channel or location.channel,
            not_older_than=request.not_older_than,
            max_age=None if request.max_age is None else timedelta(days=request.max_age),
        )
        where = str(location)
        report.findings += check_comment(signature, location.filename, manifest, where)
        report.findings += check_manifest(policy, manifest, where)
        if not any(request.selects(artefact) for artefact in manifest.artefacts):
            message = f"the release has no artefact for {request.selection}"
            report.findings.append(Finding("E_MISSING", where, message))

    def _check_artefacts(
        self, report: ReleaseReport, manifest: Manifest, start_progress: StartProgress
    ) -> None:
        """Check the selected artefacts, unless the manifest is for another channel."""
        chosen = [a for a in manifest.artefacts if self.request.selects(a)]
        if self.request.manifest_only or any(f.code == "E_CHANNEL" for f in report.findings):
            # Another channel's artefacts may be gigabytes that nobody asked for.
            chosen = []
        checked = self._read_artefacts(manifest, chosen, start_progress) if chosen else {}
        report.artefacts = [
            checked.get(artefact.filename, CheckedArtefact(artefact, None))
            for artefact in manifest.artefacts
        ]
        folder = self.found.location.local_folder
        if folder is not None and len(chosen) == len(manifest.artefacts):
            report.findings += [
                Finding("E_UNEXPECTED", name, "the manifest does not list this file")
                for name in unexpected_files(folder, manifest)
            ]

    def _read_artefacts(
        self, manifest: Manifest, chosen: Sequence[Artefact], start_progress: StartProgress
    ) -> dict[str, CheckedArtefact]:
        progress = SharedProgress(start_progress(sum(artefact.size_bytes for artefact in chosen)))
        check = ArtefactCheck(self.found.location, manifest, self.origin, self.verifier, progress)
        results = run_parallel(
            check.check, chosen, lambda artefact: artefact.size_bytes, progress, self.request.jobs
        )
        return {checked.artefact.filename: checked for checked in results}
