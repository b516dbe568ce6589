"""Executes a plan: one action after the other, each recorded in the journal.

A signal, a power cut or a failure leaves every file whole, old or new. Executing the same
plan again gives the same result as an uninterrupted run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from platform_common.errors import PlatformError, access_error
from platform_common.message import Sentence
from platform_common.paths import SECRETS, Paths
from platform_common.records.key_store import store_keys
from platform_common.storage.atomic_write import ROOT, make_folder, remove_file, write_atomic
from platform_common.storage.file_lock import LockedError, changing
from platform_common.storage.stale_files import remove_left_overs
from wizard_app.setup.apply.authorized_keys import add_keys
from wizard_app.setup.apply.command_runners import Run
from wizard_app.setup.apply.journal import ActionState, Entry, Journal
from wizard_app.setup.apply.progress import SetupProgress
from wizard_app.setup.plan.actions import (
    MESH_VPN_KEY,
    STORE_ACCESS,
    TUNNEL_CREDENTIALS,
    Action,
    AddKeys,
    RemoveFile,
    RunCommand,
    SetVariables,
    WriteFile,
)
from wizard_app.setup.plan.plan import Item, Plan
from wizard_app.setup.settings import JOURNAL
from wizard_app.setup.snapshot import Snapshot

OnProgress = Callable[[SetupProgress], None]
# Executes a plan that was made from a snapshot; raises `PlatformError`.
Execute = Callable[[Snapshot, Plan, OnProgress], None]
_LOCK_WAIT_S = 0.5
_KEY_FILE_MODE = 0o600
AGAIN = Sentence("Fix that, then try again. Repeating what is already done does no harm.")


class ApplyError(PlatformError):
    """An action failed; earlier actions are done, later ones were not started."""

    def __init__(self, action: Action, error: PlatformError) -> None:
        self.what, self.problem = action.said, error.said
        said = Sentence("{what}: {problem}", what=self.what, problem=error.said)
        super().__init__(said, hint=error.advice or AGAIN)


def execute(
    plan: Plan,
    device: Paths,
    run: Run,
    *,
    setup: str,
    on_progress: OnProgress = lambda progress: None,
) -> None:
    """Execute `plan` on `device`, its commands with `run`; `setup` is for the journal.

    The caller holds a lock: `one_at_a_time`, or root's own (`completion.alone`). Raises
    `ApplyError`, or what writing the journal raises.
    """
    for sweep in _sweeps(device):
        sweep()
    journal = Journal(device.path_of(JOURNAL))
    journal.begin(setup, [_entry(item) for item in plan])
    for number, item in enumerate(plan):
        if not item.kept:
            said = SetupProgress(number + 1, len(plan), item.action.id, str(item.action.said))
            _try(item, device, run, partial(_note, journal, on_progress, said))
    journal.end()


def one_at_a_time(device: Paths) -> contextlib.AbstractContextManager[None]:
    """Keep other wizards from setting up `device` until the block ends.

    Raises `LockedError`, and `AccessError` if the disk does not support locks.
    """
    journal = device.path_of(JOURNAL)
    make_folder(journal.parent)
    return changing(journal.with_name("apply"), wait_s=_LOCK_WAIT_S)


def tidy(device: Paths) -> None:
    """Remove secrets that a killed attempt left in temporary files.

    Files of other users stay, such as root's when the wizard is not root. Raises
    `LockedError` while the device is being set up.
    """
    if device.has(JOURNAL):
        with one_at_a_time(device):
            for sweep in _sweeps(device):
                with contextlib.suppress(PlatformError):
                    sweep()


def _entry(item: Item) -> Entry:
    return Entry(item.action.id, str(item.action.said), "kept" if item.kept else "waiting")


def _note(
    journal: Journal,
    on_progress: OnProgress,
    action: SetupProgress,
    state: ActionState,
    why: str = "",
) -> None:
    # Reported first, so that a failure is seen even if the journal cannot be written.
    on_progress(msgspec.structs.replace(action, state=state, why=why))
    journal.note(action.number - 1, state, why)


def _try(item: Item, device: Paths, run: Run, note: Callable[..., None]) -> None:
    try:
        note("running")
        _perform(item.action, device, run)
        note("done")
    except PlatformError as error:
        with contextlib.suppress(PlatformError):
            note("failed", error.message)
        raise ApplyError(item.action, error) from error


def _perform(action: Action, device: Paths, run: Run) -> None:
    if action.lacks_secret:
        raise PlatformError(Sentence("A key or password is no longer in memory: enter it again"))
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
            path = device.on_device(action.path)
            remove_left_overs(path.parent, of_name=path.name)
            remove_file(path)
        case RunCommand():
            with _key_file(action, device):
                run(action)


@contextlib.contextmanager
def _key_file(command: RunCommand, device: Paths) -> Iterator[None]:
    """Keep the file with a command's key until the block ends."""
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
        remove_file(path)


def _sweeps(device: Paths) -> Iterator[Callable[[], None]]:
    """The files to sweep, including those of actions that the plan no longer has."""
    for name in (STORE_ACCESS, TUNNEL_CREDENTIALS, MESH_VPN_KEY):
        path = device.on_device(name)
        yield partial(remove_left_overs, path.parent, of_name=path.name)
    yield partial(remove_file, device.on_device(MESH_VPN_KEY))
    yield partial(_sweep_keys, device.path_of(SECRETS))


def _sweep_keys(keys: Path) -> None:
    with access_error(keys.parent):
        if not keys.parent.is_dir():
            return
    # A writer that changes them sweeps there too.
    with contextlib.suppress(LockedError), changing(keys, wait_s=0):
        remove_left_overs(keys.parent, of_name=keys.name)
