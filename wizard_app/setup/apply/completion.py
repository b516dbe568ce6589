"""The completion marker: root's file `/etc/platform/setup-complete`, written last.

While it exists no wizard starts by itself, and the root helper sets up nothing. It holds no
secret, and only root can remove it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json

import msgspec
from msgspec import Struct, field

from platform_common.clock import now
from platform_common.errors import PlatformError
from platform_common.formats.decode import from_json
from platform_common.paths import SETUP_COMPLETE, Found, Paths
from platform_common.records import record_file
from platform_common.storage.atomic_write import ROOT, make_folder, remove_file, write_atomic
from platform_common.storage.file_lock import changing
from platform_common.storage.stale_files import remove_left_overs
from wizard_app.setup.plan.plan import Plan, plan_digest
from wizard_app.setup.snapshot import Snapshot
from wizard_app.setup.state import WizardState

_MODE = 0o644
_LOCK_WAIT_S = 0.5
_DIGEST_LENGTH = 16


class Completion(Struct, frozen=True):
    """The setup, digests of its plan and its answers, and the time; empty if unknown."""

    setup: str = ""
    plan: str = field(name="mark", default="")
    answers: str = ""
    completed_at: str = ""

    def is_of(self, state: WizardState) -> bool:
        """Whether the device was set up with these answers."""
        return (self.setup, self.answers) == (state.started_at, _digest(state))


def completion(device: Paths) -> Completion | None:
    """The completion marker of `device`; None while it is not set up."""
    if not device.has(SETUP_COMPLETE):
        return None
    # Any file counts: it may have been made by hand.
    with contextlib.suppress(PlatformError):
        found = Found(device.path_of(SETUP_COMPLETE))
        return record_file.read(found, lambda data: from_json(data, Completion))
    return Completion()


def alone(device: Paths) -> contextlib.AbstractContextManager[None]:
    """Root's lock: keep others from setting up the device until the block ends.

    Its folder is root's, so that no other user can remove the lock. Raises `PlatformError`.
    """
    path = device.path_of(SETUP_COMPLETE)
    make_folder(path.parent)
    return changing(path, wait_s=_LOCK_WAIT_S)


def complete(device: Paths, snapshot: Snapshot, plan: Plan) -> None:
    """Write the completion marker; within `alone`. Raises `PlatformError`."""
    path, state = device.path_of(SETUP_COMPLETE), snapshot.state
    made = Completion(state.started_at, plan_digest(plan), _digest(state), now())
    remove_left_overs(path.parent, of_name=path.name)
    write_atomic(path, msgspec.json.encode(made) + b"\n", mode=_MODE, owner=ROOT)


def take_back(device: Paths) -> None:
    """Remove the completion marker durably; within `alone`. Raises `AccessError`."""
    remove_file(device.path_of(SETUP_COMPLETE))


def _digest(state: WizardState) -> str:
    text = json.dumps(state.answers.values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
