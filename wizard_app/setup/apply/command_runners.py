"""Runs the commands of a plan on this machine, or only records them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from platform_common.clock import now
from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.paths import Paths
from platform_common.plain_text import one_line
from platform_common.process.run import Finished
from platform_common.process.run import run as run_program
from platform_common.redaction import Redactor
from platform_common.storage.append_log import append_line
from platform_common.storage.atomic_write import make_folder
from wizard_app.setup.plan.actions import RunCommand

Run = Callable[[RunCommand], None]
_OUTPUT_LIMIT_BYTES = 256 << 10
_MOST_SAID = 600
_RECORD_MODE = 0o644


class CommandError(PlatformError):
    """A command that failed."""


def on_machine(device: Paths) -> Run:
    """Runs commands on this machine, with the files of `device`; raises `PlatformError`."""

    def run(command: RunCommand) -> None:
        argv = [_placed(word, command, device) for word in command.argv]
        finished = run_program(argv, timeout_s=command.timeout_s, limit_bytes=_OUTPUT_LIMIT_BYTES)
        if finished.status != 0:
            raise CommandError(_how(finished, argv[0], command))

    return run


def recorded(path: Path) -> Run:
    """Adds each command to the file at `path`, as a line of JSON; raises `PlatformError`."""

    def run(command: RunCommand) -> None:
        make_folder(path.parent)
        line = json.dumps({"at": now(), "argv": list(command.argv)})
        append_line(path, line.encode(), mode=_RECORD_MODE)

    return run


def _placed(word: str, command: RunCommand, device: Paths) -> str:
    for path in command.files:
        word = word.replace(path, str(device.on_device(path)))
    return word


def _how(finished: Finished, program: str, command: RunCommand) -> Sentence:
    """Say how a failed command ended."""
    said = _said(finished.errors.strip() or finished.output, command)
    if finished.status < 0:
        number = -finished.status
        return Sentence("{program} was ended by signal {number}", program=program, number=number)
    status = finished.status
    if not said:
        return Sentence("{program} ended with status {status}", program=program, status=status)
    return Sentence(
        "{program} ended with status {status}: {why}", program=program, status=status, why=said
    )


def _said(output: bytes, command: RunCommand) -> str:
    """The end of a command's output, in one line and without the secret that it received."""
    words = one_line(output.decode("utf-8", "replace"))
    return Redactor(command.secrets).redact(words)[-_MOST_SAID:]
