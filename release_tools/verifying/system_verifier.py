"""Judging signatures with the `minisign` program, alone or beside our own code."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from platform_common.plain_text import printable
from platform_common.process.run import ProcessError
from platform_common.storage.stale_files import signals_held
from release_tools.signing.keys import candidates
from release_tools.signing.minisign import PublicKey, Signature, SignatureError
from release_tools.verifying.streaming_process import Feed, feeding
from release_tools.verifying.verifier import Judging, Verifier

PROGRAM = "minisign"
_PROGRAM_TIMEOUT_S = 30.0
_SHOWN_OUTPUT = 300
_REMOVING_TRIES, _REMOVING_WAIT_S = 40, 0.05


@contextlib.contextmanager
def open_system_verifier(keys: Sequence[PublicKey], beside: Verifier | None) -> Iterator[Verifier]:
    """A verifier that runs the program; both must agree where there is another one `beside` it."""
    with _private_folder() as folder:
        system = SystemVerifier(keys, folder)
        yield system if beside is None else BothVerifiers(beside, system)


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder that is gone behind the block, whatever threads of it that stop still do there."""
    folder = Path(mkdtemp(prefix="release-tools-"))
    try:
        yield folder
    finally:
        with signals_held():
            for _ in range(_REMOVING_TRIES):
                shutil.rmtree(folder, ignore_errors=True)
                if not folder.exists():
                    break
                time.sleep(_REMOVING_WAIT_S)


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
            # Each has files of its own: artefacts of equal bytes have equal signatures.
            folder = Path(stack.enter_context(TemporaryDirectory(dir=self.folder)))
            signature_path = folder / "sig"
            signature_path.write_bytes(data)
            feeds = []
            for number, key in enumerate(candidates(self.keys, signature)):
                key_path = folder / f"{number}.pub"
                key_path.write_bytes(key.render())
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
            words = last.output[:_SHOWN_OUTPUT].decode("utf-8", "replace")
            said = printable(words.strip().replace("\n", " ")) or "nothing"
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

    native: Verifier
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
