"""Who judges a signature: this program, the `minisign` program, or both.

A verifier sees the signed bytes once, in pieces, while they are hashed, so that
what was judged is what was read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from platform_common.processes import Feed, ProcessError, feeding
from platform_common.terminal import printable
from release_tools.keys import candidates, check_signature
from release_tools.minisign import PublicKey, Signature, SignatureError

PROGRAM = "minisign"
_PROGRAM_TIMEOUT_S = 30.0


class Judging(Protocol):
    """One signature being judged."""

    def feed(self, chunk: memoryview) -> None:
        """Take the next piece of the signed file."""

    def conclude(self, blake2b: bytes) -> None:
        """Raise `SignatureError` unless the signature holds; `blake2b` is the file's digest."""


class Verifier(Protocol):
    """Opens a `Judging` for a signature file's bytes and what was parsed from them."""

    def judging(
        self, data: bytes, signature: Signature
    ) -> contextlib.AbstractContextManager[Judging]:
        """The judging of one signature; raises `SignatureError` when no key is known for it."""


@dataclass(frozen=True, slots=True)
class NativeVerifier:
    """Judges with this program's own code."""

    keys: Sequence[PublicKey]

    @contextlib.contextmanager
    def judging(self, data: bytes, signature: Signature) -> Iterator[Judging]:
        """See `Verifier`."""
        candidates(self.keys, signature)
        yield _Native(self.keys, signature)


@dataclass(frozen=True, slots=True)
class _Native:
    keys: Sequence[PublicKey]
    signature: Signature

    def feed(self, chunk: memoryview) -> None:
        pass

    def conclude(self, blake2b: bytes) -> None:
        check_signature(self.keys, self.signature, blake2b)


@dataclass(frozen=True, slots=True)
class SystemVerifier:
    """Judges with the `minisign` program; `folder` is private and takes its input files."""

    keys: Sequence[PublicKey]
    folder: Path

    @contextlib.contextmanager
    def judging(self, data: bytes, signature: Signature) -> Iterator[Judging]:
        """See `Verifier`."""
        if signature.legacy:
            raise SignatureError("E_SIG", "the signature is of the legacy kind")
        with ExitStack() as stack:
            feeds = []
            for number, key in enumerate(candidates(self.keys, signature)):
                name = f"{signature.signature.hex()}-{number}"
                key_path, signature_path = self.folder / f"{name}.pub", self.folder / f"{name}.sig"
                key_path.write_bytes(key.render())
                signature_path.write_bytes(data)
                argv = [PROGRAM, "-V", "-p", f"{key_path}", "-m", "/dev/stdin"]
                try:
                    feed = stack.enter_context(
                        feeding([*argv, "-x", f"{signature_path}"], timeout_s=_PROGRAM_TIMEOUT_S)
                    )
                except ProcessError as error:
                    raise _failed(error) from error
                feeds.append(feed)
            yield _System(feeds)


@dataclass(frozen=True, slots=True)
class _System:
    feeds: Sequence[Feed]

    def feed(self, chunk: memoryview) -> None:
        for feed in self.feeds:
            try:
                feed.write(chunk)
            except ProcessError as error:
                raise _failed(error) from error

    def conclude(self, blake2b: bytes) -> None:
        try:
            results = [feed.finish() for feed in self.feeds]
        except ProcessError as error:
            raise _failed(error) from error
        if not any(result.status == 0 for result in results):
            last = results[-1]
            said = printable(last.output.strip().replace("\n", " ")) or "nothing"
            raise SignatureError(
                "E_SIG", f"{PROGRAM} refuses it (status {last.status}), saying: {said}"
            )


def _failed(error: ProcessError) -> SignatureError:
    return SignatureError(
        "E_VERIFIER", error.message, hint="Install minisign, or use --verifier native."
    )


@dataclass(frozen=True, slots=True)
class BothVerifiers:
    """Judges with both, and trusts only what both accept."""

    native: NativeVerifier
    system: SystemVerifier

    @contextlib.contextmanager
    def judging(self, data: bytes, signature: Signature) -> Iterator[Judging]:
        """See `Verifier`."""
        with (
            self.native.judging(data, signature) as native,
            self.system.judging(data, signature) as system,
        ):
            yield _Both(native, system)


@dataclass(frozen=True, slots=True)
class _Both:
    native: Judging
    system: Judging

    def feed(self, chunk: memoryview) -> None:
        self.system.feed(chunk)

    def conclude(self, blake2b: bytes) -> None:
        verdicts = [_verdict(judging, blake2b) for judging in (self.native, self.system)]
        refusals = [verdict for verdict in verdicts if verdict is not None]
        if len(refusals) == 1 and refusals[0].code == "E_SIG":
            raise SignatureError("E_VERIFIER", f"the two verifiers disagree: {refusals[0].message}")
        if refusals:
            raise refusals[0]


def _verdict(judging: Judging, blake2b: bytes) -> SignatureError | None:
    try:
        judging.conclude(blake2b)
    except SignatureError as error:
        return error
    return None


def make_verifier(name: str, keys: Sequence[PublicKey], folder: Path) -> Verifier:
    """The verifier of that name (`VERIFIER_NAMES`); `folder` is private and empty."""
    native, system = NativeVerifier(keys), SystemVerifier(keys, folder)
    both = BothVerifiers(native, system)
    verifiers: dict[str, Verifier] = {"native": native, "system": system, "both": both}
    return verifiers[name]
