"""Verifying releases: the only place that knows the order of the checks.

Signature over the exact bytes, then the schema, then policy, then every artefact.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote, urlsplit

from platform_common.errors import UnreadableError
from release_tools.distribution.layout import (
    MANIFEST_LIMIT_BYTES,
    SIGNATURE_LIMIT_BYTES,
    SIGNATURE_SUFFIX,
    manifests_at,
    unexpected_files,
)
from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import (
    Artefact,
    Manifest,
    ManifestError,
    SchemaVersionError,
    parse,
)
from release_tools.manifest.vocabulary import CHANNELS
from release_tools.origins.origin import Origin, path_of
from release_tools.origins.stream import MissingError, show_url
from release_tools.progress import StartProgress
from release_tools.signing.minisign import (
    FormatError,
    PublicKey,
    Signature,
    SignatureError,
    prehash,
)
from release_tools.verifying.policy import (
    Finding,
    VerifyPolicy,
    check_comment,
    check_manifest,
)
from release_tools.verifying.report import CheckedArtefact, ReleaseReport, unread
from release_tools.verifying.verifier import Verifier
from release_tools.verifying.verifiers import open_verifier

_PAIR_RETRY_PAUSES_S = (1.0, 3.0)


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to verify and what to ask of it; None asks for nothing.

    `max_age` is in days, `timeout` in seconds. `target` and `profile` limit which
    artefacts are read; `manifest_only` reads none.
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
        """Whether `artefact` is of the target and profile asked for."""
        return self.target in (None, artefact.target) and self.profile in (None, artefact.profile)

    @property
    def selection(self) -> str:
        """The target and profile asked for, for a message."""
        return ", ".join(word for word in (self.target, self.profile) if word)


def verify_location(request: VerifyRequest, start_progress: StartProgress) -> list[ReleaseReport]:
    """Everything that is found about the releases at the location.

    Raises `UnreadableError` where there is no manifest and `UnsignedError` where
    the only one is not signed.
    """
    origin = Origin(request.timeout)
    now = datetime.now(UTC)
    with open_verifier(request.verifier, request.keys) as verifier:
        return [
            _Verification(request, url, origin, verifier, now).run(start_progress)
            for url in manifests_at(request.location, origin)
        ]


@dataclass(frozen=True, slots=True)
class _Verification:
    request: VerifyRequest
    url: str
    origin: Origin
    verifier: Verifier
    now: datetime

    def run(self, start_progress: StartProgress) -> ReleaseReport:
        report = ReleaseReport(self.url)
        data = _signed_manifest(report, self.origin, self.verifier)
        manifest = None if data is None else _parsed(report, data)
        if manifest is None or report.signature is None:
            return report
        where = show_url(self.url)
        name = unquote(urlsplit(self.url).path.rpartition("/")[2])
        report.findings += check_comment(report.signature, name, manifest, where)
        report.findings += check_manifest(self._policy(), manifest, where)
        refused = any(finding.code == "E_CHANNEL" for finding in report.findings)
        selected = [a for a in manifest.artefacts if self.request.selects(a)]
        if not selected:
            complaint = f"the release has no artefact for {self.request.selection}"
            report.findings.append(Finding("E_MISSING", where, complaint))
        chosen = [] if refused or self.request.manifest_only else selected
        checked = self._check(manifest, chosen, start_progress)
        report.artefacts = [
            checked.get(artefact.filename, CheckedArtefact(artefact, None))
            for artefact in manifest.artefacts
        ]
        if len(chosen) == len(manifest.artefacts) and urlsplit(self.url).scheme == "file":
            report.findings += [
                Finding("E_UNEXPECTED", name, "the manifest does not list this file")
                for name in unexpected_files(path_of(self.url).parent, manifest)
            ]
        return report

    def _policy(self) -> VerifyPolicy:
        request = self.request
        folder = urlsplit(self.url).path.split("/")[-2:-1]
        named = next((channel for channel in CHANNELS if [channel] == folder), None)
        return VerifyPolicy(
            now=self.now,
            channel=request.channel or named,
            not_older_than=request.not_older_than,
            max_age=None if request.max_age is None else timedelta(days=request.max_age),
        )

    def _check(
        self, manifest: Manifest, chosen: Sequence[Artefact], start_progress: StartProgress
    ) -> dict[str, CheckedArtefact]:
        if not chosen:
            return {}
        # Here, because a manifest alone is verified without any of it.
        from release_tools.hashing import cores
        from release_tools.parallel import Pace, side_by_side
        from release_tools.verifying.artefact_check import ArtefactCheck

        pace = Pace(start_progress(sum(artefact.size_bytes for artefact in chosen)))
        check = ArtefactCheck(self.url, manifest, self.origin, self.verifier, pace)
        results = side_by_side(
            check.check,
            chosen,
            jobs=self.request.jobs or cores(),
            pace=pace,
            size_of=lambda artefact: artefact.size_bytes,
        )
        return {checked.artefact.filename: checked for checked in results}


def _signed_manifest(report: ReleaseReport, origin: Origin, verifier: Verifier) -> bytes | None:
    """The manifest's bytes, their signature checked; None with a finding otherwise.

    A manifest and its detached signature cannot be replaced in one moment, so a
    pair from a server that does not match is fetched again.
    """
    remote = urlsplit(report.url).scheme != "file"
    for pause_s in (*(_PAIR_RETRY_PAUSES_S if remote else ()), None):
        finding, data = _pair(report, origin, verifier)
        if finding is None or pause_s is None or finding.code not in ("E_SIG", "E_MISSING"):
            break
        time.sleep(pause_s)
    if finding is not None:
        report.findings.append(finding)
        return None
    return data


def _pair(
    report: ReleaseReport, origin: Origin, verifier: Verifier
) -> tuple[Finding | None, bytes]:
    where = show_url(report.url)
    try:
        data = origin.read(report.url, MANIFEST_LIMIT_BYTES)
    except UnreadableError as error:
        return unread(error, where), b""
    parts = urlsplit(report.url)
    signature_url = parts._replace(path=parts.path + SIGNATURE_SUFFIX).geturl()
    try:
        signature_data = origin.read(signature_url, SIGNATURE_LIMIT_BYTES)
        signature = Signature.parse(signature_data)
        with verifier.judging(signature_data, signature) as judging:
            judging.feed(memoryview(data))
            judging.conclude(prehash(data))
    except MissingError:
        return Finding("E_MISSING", where, "the manifest has no signature beside it"), data
    except FormatError as error:
        return Finding("E_SIG", where, error.message), data
    except SignatureError as error:
        return Finding(error.code, where, error.message), data
    except UnreadableError as error:
        return unread(error, where), data
    # Only now is there a signature to speak of.
    report.signature = signature
    return None, data


def _parsed(report: ReleaseReport, data: bytes) -> Manifest | None:
    where = show_url(report.url)
    try:
        report.manifest = parse(data)
    except SchemaVersionError as error:
        report.findings.append(Finding("E_SCHEMA_VERSION", where, f"{error.message}: {error.hint}"))
    except ManifestError as error:
        report.findings += [Finding("E_SCHEMA", where, problem) for problem in error.problems]
    return report.manifest
