"""Verifying one file and its detached signature, as `minisign -V` does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from platform_common.errors import access_error
from platform_common.storage.safe_read import open_regular, read_bounded
from release_tools.copy_and_digest import digest_file, unchanged
from release_tools.distribution.layout import SIGNATURE_LIMIT_BYTES
from release_tools.hashing import BUFFER_BYTES
from release_tools.progress import StartProgress
from release_tools.signing.minisign import PublicKey, Signature, SignatureError
from release_tools.signing.signature_check import (
    check_legacy_signature,
    check_signature,
    matching_keys,
)
from release_tools.verifying.policy import Finding, check_comment


def verify_one(
    file: Path,
    signature_path: Path,
    keys: Sequence[PublicKey],
    start_progress: StartProgress,
    *,
    legacy: bool,
    strict: bool,
) -> tuple[Signature, list[Finding]]:
    """Return the good signature of `file` and the findings about it, which `strict` refuses.

    Raises `SignatureError`, `FormatError` and `AccessError`.
    """
    signature = Signature.parse(read_bounded(signature_path, SIGNATURE_LIMIT_BYTES))
    matching_keys(keys, signature)  # Before a large file is read in vain.
    findings = list(check_comment(signature, file.name, None, str(signature_path)))
    if strict and (refused := [finding for finding in findings if not finding.warning]):
        raise SignatureError(refused[0].code, refused[0].message)
    with access_error(file):
        advance = start_progress(file.stat().st_size)
    if signature.legacy and legacy and not strict:
        check_legacy_signature(keys, signature, lambda: _chunks(file))
    else:
        digests = digest_file(file, on_chunk=lambda chunk: advance(len(chunk)))
        check_signature(keys, signature, digests.blake2b)
    return signature, findings


def _chunks(file: Path) -> Iterator[memoryview]:
    buffer = memoryview(bytearray(BUFFER_BYTES))
    with access_error(file), open_regular(file) as descriptor, unchanged(file, descriptor):
        while count := os.readv(descriptor, [buffer]):
            yield buffer[:count]
