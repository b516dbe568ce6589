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
    artefact_url,
)
from release_tools.hashing import TooLongError, digest_stream
from release_tools.manifest.document import Artefact, Manifest
from release_tools.manifest.vocabulary import REFERENCE_FORMATS
from release_tools.origins.origin import Origin
from release_tools.origins.stream import MissingError, Stream
from release_tools.origins.urls import leaves_tree, resolve
from release_tools.parallel import Pace
from release_tools.signing.minisign import FormatError, Signature, SignatureError
from release_tools.verifying.policy import Finding, check_comment, check_name
from release_tools.verifying.report import CheckedArtefact, unread
from release_tools.verifying.verifier import Verifier


@dataclass(frozen=True, slots=True)
class ArtefactCheck:
    """The artefacts of one release being read, each once."""

    manifest_url: str
    manifest: Manifest
    origin: Origin
    verifier: Verifier
    pace: Pace

    def check(self, artefact: Artefact, paired: bool) -> CheckedArtefact:
        """Read `artefact` once and say everything that is wrong with it."""
        where = artefact.filename
        url = artefact_url(self.manifest_url, self.manifest, artefact)
        findings = list(check_name(self.manifest, artefact, where))
        for named in (artefact.minisig_url, artefact.url or ""):
            if leaves_tree(self.manifest_url, named):
                findings.append(
                    Finding("E_URL", where, f"{named!a} leads out of the manifest's folder")
                )
                return CheckedArtefact(artefact, None, tuple(findings))
        signature, signature_data = self._signature(artefact, findings)
        try:
            with self.origin.open(url, of=self.manifest_url) as stream:
                findings += self._read(artefact, stream, signature, signature_data, paired)
        except PlatformError as error:
            findings.append(_finding_of(error, where, "the artefact is missing"))
        return CheckedArtefact(artefact, url, tuple(findings))

    def _signature(
        self, artefact: Artefact, findings: list[Finding]
    ) -> tuple[Signature | None, bytes]:
        where = f"{artefact.filename}{SIGNATURE_SUFFIX}"
        url = resolve(self.manifest_url, artefact.minisig_url)
        try:
            data = self.origin.read(url, SIGNATURE_LIMIT_BYTES, of=self.manifest_url)
            signature = Signature.parse(data)
        except FormatError as error:
            findings.append(Finding("E_SIG", where, error.message))
        except PlatformError as error:
            findings.append(_finding_of(error, where, "the signature is missing"))
        else:
            findings += check_comment(signature, artefact.filename, self.manifest, where)
            return signature, data
        return None, b""

    def _read(
        self,
        artefact: Artefact,
        stream: Stream,
        signature: Signature | None,
        signature_data: bytes,
        paired: bool,
    ) -> Iterator[Finding]:
        where = artefact.filename
        if stream.size is not None and stream.size != artefact.size_bytes:
            yield _wrong_size(artefact, f"{stream.size:,}")
            return
        line = bytearray()
        with contextlib.ExitStack() as stack:
            judging = None
            try:
                if signature is not None:
                    judging = stack.enter_context(self.verifier.judging(signature_data, signature))
            except SignatureError as error:
                yield Finding(error.code, where, error.message)

            def take(chunk: memoryview) -> None:
                self.pace(chunk)
                if judging is not None:
                    judging.feed(chunk)
                if artefact.format in REFERENCE_FORMATS and len(line) <= REFERENCE_LIMIT_BYTES:
                    line.extend(chunk[: REFERENCE_LIMIT_BYTES + 1])

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
            if judging is not None:
                try:
                    judging.conclude(digests.blake2b)
                except SignatureError as error:
                    yield Finding(error.code, where, error.message)
        if artefact.format in REFERENCE_FORMATS and line.strip() != (artefact.url or "").encode():
            yield Finding("E_REFERENCE", where, "the reference in the file is not the entry's url")


def _wrong_size(artefact: Artefact, seen: str) -> Finding:
    return Finding("E_SIZE", artefact.filename, f"it has {seen} bytes, not {artefact.size_bytes:,}")


def _finding_of(error: PlatformError, where: str, missing: str) -> Finding:
    if isinstance(error, SignatureError):
        return Finding(error.code, where, error.message)
    if isinstance(error, MissingError):
        return Finding("E_MISSING", where, f"{missing}: {error.message}")
    return unread(error, where)
