"""That the device is set up: root's file `/etc/platform/setup-complete`, written last of all.

As long as it is there no wizard starts by itself, and the root helper sets up nothing. It
holds no secret, and nobody but root takes it back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json

import msgspec
from msgspec import Struct

from platform_common.clock import now
from platform_common.errors import PlatformError, UnreadableError
from platform_common.formats.decode import from_json
from platform_common.paths import SETUP_COMPLETE, Found, Paths
from platform_common.records import record_file
from platform_common.storage.atomic_write import ROOT, fsync_directory, make_folder, write_atomic
from platform_common.storage.file_lock import changing
from platform_common.storage.stale_files import remove_left_overs
from wizard_app.setup.plan.plan import Plan, plan_digest
from wizard_app.setup.snapshot import Standing
from wizard_app.setup.state import WizardState

_MODE = 0o644
_LOCK_WAIT_S = 0.5
_DIGEST_LENGTH = 16


class Completion(Struct, frozen=True):
    """Which setup it was, of which plan and answers, and when; empty where that is not told."""

    setup: str = ""
    mark: str = ""
    answers: str = ""
    completed_at: str = ""

    def is_of(self, state: WizardState) -> bool:
        """Whether what a wizard has been answered is what the device was set up with."""
        return (self.setup, self.answers) == (state.started_at, _digest(state))


def completion(device: Paths) -> Completion | None:
    """That `device` is set up; None while it is not."""
    if not device.has(SETUP_COMPLETE):
        return None
    # Whatever is there counts: somebody may have made it by hand.
    with contextlib.suppress(PlatformError):
        found = Found(device.writable(SETUP_COMPLETE))
        return record_file.read(found, lambda data: from_json(data, Completion))
    return Completion()


def alone(device: Paths) -> contextlib.AbstractContextManager[None]:
    """Keep others from setting up the device, or from taking that back, until the block ends.

    Nobody but root can, whatever becomes of locks elsewhere. Raises `PlatformError`.
    """
    path = device.writable(SETUP_COMPLETE)
    make_folder(path.parent)
    return changing(path, wait_s=_LOCK_WAIT_S)


def complete(device: Paths, standing: Standing, plan: Plan) -> None:
    """Have `device` be set up, as the plan has been done; within `alone`.

    Raises `PlatformError`.
    """
    path, state = device.writable(SETUP_COMPLETE), standing.state
    made = Completion(state.started_at, plan_digest(plan), _digest(state), now())
    remove_left_overs(path.parent, of_name=path.name)
    write_atomic(path, msgspec.json.encode(made) + b"\n", mode=_MODE, owner=ROOT)


def take_back(device: Paths) -> None:
    """Have `device` be set up no more, durably; within `alone`. Raises `UnreadableError`."""
    path = device.writable(SETUP_COMPLETE)
    try:
        path.unlink(missing_ok=True)
        fsync_directory(path.parent)
    except OSError as error:
        raise UnreadableError.of(path, error) from error


def _digest(state: WizardState) -> str:
    text = json.dumps(state.answers.values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
