"""Checking the artefacts of a release whose manifest is already trusted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from platform_common.errors import PlatformError
from release_tools.distribution.layout import (
    REFERENCE_LIMIT_BYTES,
    SIGNATURE_LIMIT_BYTES,
    SIGNATURE_SUFFIX,
)
from release_tools.distribution.manifest_location import ManifestLocation
from release_tools.hashing import TooLongError, digest_stream
from release_tools.manifest.document import Artefact, Manifest
from release_tools.manifest.vocabulary import REFERENCE_FORMATS
from release_tools.origins.origin import Origin
from release_tools.origins.stream import MissingError, Stream
from release_tools.parallel import SharedProgress
from release_tools.signing.minisign import FormatError, Signature, SignatureError
from release_tools.verifying.policy import Finding, check_comment, check_name
from release_tools.verifying.report import CheckedArtefact, unreadable
from release_tools.verifying.verifier_protocol import SignatureCheck, Verifier


@dataclass(frozen=True, slots=True)
class ArtefactCheck:
    """Checks the artefacts of one release; `progress` counts the bytes that are read."""

    location: ManifestLocation
    manifest: Manifest
    origin: Origin
    verifier: Verifier
    progress: SharedProgress

    def check(self, artefact: Artefact, paired: bool) -> CheckedArtefact:
        """Read `artefact` once and return every finding; for `paired` see `digest_stream`."""
        where = artefact.filename
        findings = list(check_name(self.manifest, artefact, where))
        # Before anything is fetched: a manifest must not make a verifier read elsewhere.
        for url in (artefact.minisig_url, artefact.url or ""):
            if self.location.leaves_folder(url):
                message = f"{url!a} leads out of the manifest's folder"
                findings.append(Finding("E_URL", where, message))
                return CheckedArtefact(artefact, None, tuple(findings))
        url = self.location.artefact_url(self.manifest, artefact)
        signed = self._signature(artefact, findings)
        try:
            with self.origin.open(url, of=self.location.url) as stream:
                findings += self._read(artefact, stream, signed, paired)
        except PlatformError as error:
            findings.append(_finding(error, where, "the artefact is missing"))
        return CheckedArtefact(artefact, url, tuple(findings))

    def _signature(
        self, artefact: Artefact, findings: list[Finding]
    ) -> tuple[bytes, Signature] | None:
        """Read the signature file: its bytes and what they say, or None after adding a finding."""
        where = f"{artefact.filename}{SIGNATURE_SUFFIX}"
        url = self.location.resolve(artefact.minisig_url)
        try:
            data = self.origin.read(url, SIGNATURE_LIMIT_BYTES, of=self.location.url)
            signature = Signature.parse(data)
        except FormatError as error:
            findings.append(Finding("E_SIG", where, error.message))
        except PlatformError as error:
            findings.append(_finding(error, where, "the signature is missing"))
        else:
            findings += check_comment(signature, artefact.filename, self.manifest, where)
            return data, signature
        return None

    def _read(
        self,
        artefact: Artefact,
        stream: Stream,
        signed: tuple[bytes, Signature] | None,
        paired: bool,
    ) -> Iterator[Finding]:
        where, reference = artefact.filename, bytearray()
        if stream.size is not None and stream.size != artefact.size_bytes:
            yield _wrong_size(artefact, f"{stream.size:,}")
            return
        with contextlib.ExitStack() as stack:
            check: SignatureCheck | None = None
            if signed is not None:
                try:
                    check = stack.enter_context(self.verifier.check(*signed))
                except SignatureError as error:
                    yield Finding(error.code, where, error.message)

            def take(chunk: memoryview) -> None:
                self.progress(chunk)
                if check is not None:
                    check.update(chunk)
                # One byte too many is kept, so that a longer file does not look equal.
                if artefact.format in REFERENCE_FORMATS and len(reference) <= REFERENCE_LIMIT_BYTES:
                    reference.extend(chunk[: REFERENCE_LIMIT_BYTES + 1])

            try:
                digests = digest_stream(
                    stream.readinto, limit_bytes=artefact.size_bytes, paired=paired, on_chunk=take
                )
            except TooLongError:
                yield _wrong_size(artefact, "more")
                return
            if digests.size != artefact.size_bytes:
                yield _wrong_size(artefact, f"{digests.size:,}")
            elif digests.sha256 != artefact.sha256:
                yield Finding("E_HASH", where, "the SHA-256 is not the one in the manifest")
            try:
                if check is not None:
                    check.finish(digests.blake2b)
            except SignatureError as error:
                yield Finding(error.code, where, error.message)
        is_reference = artefact.format in REFERENCE_FORMATS
        if is_reference and reference.strip() != (artefact.url or "").encode():
            yield Finding("E_REFERENCE", where, "the reference in the file is not the entry's url")


def _wrong_size(artefact: Artefact, seen: str) -> Finding:
    return Finding("E_SIZE", artefact.filename, f"it has {seen} bytes, not {artefact.size_bytes:,}")


def _finding(error: PlatformError, where: str, missing: str) -> Finding:
    if isinstance(error, SignatureError):
        return Finding(error.code, where, error.message)
    if isinstance(error, MissingError):
        return Finding("E_MISSING", where, f"{missing}: {error.message}")
    return unreadable(error, where)
