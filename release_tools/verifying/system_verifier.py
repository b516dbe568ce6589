"""Checking signatures with the `minisign` program."""

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
from release_tools.signing.minisign import PublicKey, Signature, SignatureError
from release_tools.signing.signature_check import matching_keys
from release_tools.verifying.streaming_process import StreamingProcess
from release_tools.verifying.verifier_protocol import SignatureCheck

_PROGRAM = "minisign"
_PROGRAM_TIMEOUT_S = 30.0
_SHOWN_OUTPUT = 300
_REMOVAL_TRIES, _REMOVAL_PAUSE_S = 40, 0.05


@contextlib.contextmanager
def open_system_verifier(keys: Sequence[PublicKey]) -> Iterator[SystemVerifier]:
    """Open a verifier that runs the program, with a private folder until the block ends."""
    folder = Path(mkdtemp(prefix="release-tools-"))
    try:
        yield SystemVerifier(keys, folder)
    finally:
        with signals_held():
            # After an error, worker threads may still be writing here for a moment.
            for _ in range(_REMOVAL_TRIES):
                shutil.rmtree(folder, ignore_errors=True)
                if not folder.exists():
                    break
                time.sleep(_REMOVAL_PAUSE_S)


@dataclass(frozen=True, slots=True)
class SystemVerifier:
    """Checks signatures with the `minisign` program; `folder` is private, for its input files."""

    keys: Sequence[PublicKey]
    folder: Path

    @contextlib.contextmanager
    def check(self, data: bytes, signature: Signature) -> Iterator[SignatureCheck]:
        """See `Verifier`."""
        if signature.legacy:
            raise SignatureError("E_SIG", "the signature is of the legacy kind")
        with ExitStack() as stack:
            # A folder for each check: artefacts with equal bytes have equal signatures.
            folder = Path(stack.enter_context(TemporaryDirectory(dir=self.folder)))
            signature_path = folder / "sig"
            signature_path.write_bytes(data)
            processes = []
            for number, key in enumerate(matching_keys(self.keys, signature)):
                key_path = folder / f"{number}.pub"
                key_path.write_bytes(key.render())
                argv = [_PROGRAM, "-V", "-p", f"{key_path}", "-m", "/dev/stdin"]
                argv += ["-x", f"{signature_path}"]
                try:
                    process = StreamingProcess(argv, timeout_s=_PROGRAM_TIMEOUT_S)
                    processes.append(stack.enter_context(process))
                except ProcessError as error:
                    raise SignatureError("E_VERIFIER", error.message) from error
            yield _SystemCheck(processes)


@dataclass(frozen=True, slots=True)
class _SystemCheck:
    """One process for each trusted key with the signature's key id."""

    processes: Sequence[StreamingProcess]

    def update(self, chunk: memoryview) -> None:
        try:
            for process in self.processes:
                process.write(chunk)
        except ProcessError as error:
            raise SignatureError("E_VERIFIER", error.message) from error

    def finish(self, blake2b: bytes) -> None:
        try:
            results = [process.finish() for process in self.processes]
        except ProcessError as error:
            raise SignatureError("E_VERIFIER", error.message) from error
        if any(result.status == 0 for result in results):
            return
        last = results[-1]
        output = last.output[:_SHOWN_OUTPUT].decode("utf-8", "replace").strip()
        said = printable(output.replace("\n", " ")) or "nothing"
        raise SignatureError(
            "E_SIG", f"{_PROGRAM} refuses it (status {last.status}), saying: {said}"
        )
