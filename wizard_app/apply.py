"""Doing what a plan says: one action after the other, each one told in the journal.

A signal, a power cut or a failure leaves every file whole, old or new; the same plan once
more ends where it would have ended undisturbed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from platform_common.errors import PlatformError, UnreadableError
from platform_common.files import fsync_directory, make_folder, write_atomic
from platform_common.key_store import store_keys
from platform_common.left_overs import remove_left_overs
from platform_common.locks import changing
from platform_common.paths import Paths
from platform_common.sentence import Sentence
from wizard_app.actions import (
    ROOT,
    Action,
    AddKeys,
    RemoveFile,
    RunCommand,
    SetVariables,
    WriteFile,
)
from wizard_app.authorized_keys import add_keys
from wizard_app.journal import Entry, Journal
from wizard_app.plan import Item, Plan
from wizard_app.runners import Run
from wizard_app.settings import JOURNAL

_LOCK_WAIT_S = 0.5
_KEY_FILE_MODE = 0o600


class ApplyError(PlatformError):
    """An action that did not work; those before it are done, those after it are not."""


def execute(plan: Plan, device: Paths, run: Run, *, setup: str) -> None:
    """Do what `plan` says on `device`, its commands by `run`; `setup` is for the journal.

    Raises `ApplyError`, `LockedError` when another program sets up the device, or what
    writing the journal raises.
    """
    path = device.writable(JOURNAL)
    make_folder(path.parent)
    with changing(path.with_name("apply"), wait_s=_LOCK_WAIT_S):
        _sweep(plan, device)
        record = Journal(path)
        record.begin(setup, [_entry(item) for item in plan])
        for number, item in enumerate(plan):
            if not item.kept:
                record.note(number, "running")
                _try(number, item, device, run, record)
                record.note(number, "done")
        record.end()


def _entry(item: Item) -> Entry:
    return Entry(item.action.id, str(item.action.said), "kept" if item.kept else "waiting")


def _try(number: int, item: Item, device: Paths, run: Run, record: Journal) -> None:
    try:
        _perform(item.action, device, run)
    except PlatformError as error:
        # Where the disk takes no line more, what went wrong is told all the same.
        with contextlib.suppress(PlatformError):
            record.note(number, "failed", error.message)
        raise ApplyError(
            Sentence("{what}: {problem}", what=item.action.said, problem=error.said),
            hint=error.advice or "",
        ) from error


def _perform(action: Action, device: Paths, run: Run) -> None:
    if action.lacks_secret:
        raise PlatformError(Sentence("A secret is not held any more: enter it again"))
    match action:
        case WriteFile():
            path = device.on_device(action.path)
            make_folder(path.parent)
            remove_left_overs(path.parent, of_name=path.name)
            write_atomic(path, action.reveal(), mode=action.mode, owner=action.owner)
        case SetVariables():
            store_keys(device, action.values, mode=action.mode)
        case AddKeys():
            path = device.on_device(action.path)
            add_keys(path, action.lines, mode=action.mode, owner=action.owner)
        case RemoveFile():
            _remove(device.on_device(action.path))
        case RunCommand():
            with _key_file(action, device):
                run(action)


@contextlib.contextmanager
def _key_file(command: RunCommand, device: Paths) -> Iterator[None]:
    """The file of a command's key is there until the block ends."""
    if command.key_file is None:
        yield
        return
    path = device.on_device(command.key_file.path)
    make_folder(path.parent)
    data = command.key_file.secret.reveal().encode() + b"\n"
    try:
        write_atomic(path, data, mode=_KEY_FILE_MODE, owner=ROOT)
        yield
    finally:
        _remove(path)


def _sweep(plan: Plan, device: Paths) -> None:
    """Have no key file that a try left behind which was killed."""
    for item in plan:
        if isinstance(item.action, RunCommand) and item.action.key_file is not None:
            path = device.on_device(item.action.key_file.path)
            if path.parent.is_dir():
                remove_left_overs(path.parent, of_name=path.name)
                _remove(path)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            fsync_directory(path.parent)
    except OSError as error:
        raise UnreadableError.of(path, error) from error
