"""Setup without the wizard: as the root helper, from a terminal, or again.

Answers are only read from the wizard's own file. Secrets, which the wizard has in memory,
only arrive in a request to the root helper.
"""

from __future__ import annotations

import msgspec

from platform_common import clock
from platform_common.errors import PlatformError
from platform_common.message import Sentence
from platform_common.paths import SETUP_COMPLETE, WIZARD_STATE, Paths
from platform_common.records import record_file
from platformctl.root_helper.remote_operation import LARGEST_REQUEST_BYTES, RemoteOperation
from platformctl.setup.plan import BY_SLUG, snapshot_of
from wizard_app.setup import state as states
from wizard_app.setup.apply.command_runners import on_machine
from wizard_app.setup.apply.completion import alone, complete, completion, take_back
from wizard_app.setup.apply.executor import OnProgress, execute
from wizard_app.setup.apply.helper_client import (
    PLACES,
    SETUP_APPLY,
    SecretTexts,
    SetUp,
    SetupRequest,
    apply_by_helper,
)
from wizard_app.setup.pending import HeldSecrets, PendingSecrets
from wizard_app.setup.plan.plan import Plan, build_plan, plan_digest
from wizard_app.setup.serving_file import owner_of
from wizard_app.setup.snapshot import Snapshot
from wizard_app.setup.state import DONE, REVIEW
from wizard_app.setup.state_file import StateFile
from wizard_app.setup.steps import STEPS

_STATE_MODE = 0o600
_LONGEST_NAME = 80


def _apply_as_root(paths: Paths, request: SetupRequest, on_progress: OnProgress) -> SetUp:
    """Execute exactly the plan that was shown, or nothing.

    Raises what `execute` raises, and `PlatformError` if the device is already set up,
    something is missing, or the plan is a different one. A device that was set up from the
    same answers counts as success: the first reply may have been lost.
    """
    with alone(paths):
        snapshot = snapshot_of(paths, _held(request.secrets))
        if (before := completion(paths)) is not None and before.is_of(snapshot.state):
            return SetUp(0)
        if before is not None or snapshot.state.step == DONE:
            raise PlatformError(
                "This device is already set up",
                hint="To reopen setup, run: sudo platformctl setup again",
            )
        planned = _checked(snapshot, request)
        setup = snapshot.state.started_at
        execute(planned, paths, on_machine(paths), setup=setup, on_progress=on_progress)
        complete(paths, snapshot, planned)
    return SetUp(len(planned))


APPLY = RemoteOperation(
    SETUP_APPLY,
    SetupRequest,
    SetUp,
    _apply_as_root,
    changes=True,
    places=PLACES,
    request_limit_bytes=LARGEST_REQUEST_BYTES,
)


def apply(paths: Paths, on_progress: OnProgress) -> SetUp:
    """Apply the answers, with the secrets that are on the device.

    Raises what the operation raises.
    """
    planned = build_plan(snapshot_of(paths))
    socket = APPLY.helper(paths)
    if socket is None:
        done = APPLY.run(paths, SetupRequest(plan_digest(planned), {}), on_progress)
    else:
        done = apply_by_helper(socket, planned, {}, on_progress)
    _put_step(paths, DONE, completed_at=clock.now())
    return done


def again(paths: Paths) -> None:
    """Remove the completion marker and reopen setup; answers are kept.

    Raises `PlatformError`, also if setup is already open.
    """
    with alone(paths):
        state = StateFile(paths.path_of(WIZARD_STATE), STEPS).stored()
        if not paths.has(SETUP_COMPLETE) and (state is None or state.step != DONE):
            raise PlatformError("This device is not set up yet, so setup is already open")
        _put_step(paths, REVIEW, completed_at=None)
        # Last, because no wizard starts until then.
        take_back(paths)


def _checked(snapshot: Snapshot, request: SetupRequest) -> Plan:
    """Return the plan if nothing is missing and it is the one that was shown."""
    if lacks := snapshot.lacks():
        raise PlatformError(Sentence("{step}: {why}", step=lacks[0].step.short, why=lacks[0].why))
    used = snapshot.used_secrets()
    if any(named.keys() - used.get(slug, {}).keys() for slug, named in request.secrets.items()):
        raise PlatformError("A secret was sent that the plan does not need")
    planned = build_plan(snapshot)
    if plan_digest(planned) != request.digest:
        raise PlatformError(
            "The plan has changed since it was shown",
            hint="Open the review page again, or run: sudo platformctl setup plan",
        )
    return planned


def _held(secrets: SecretTexts) -> PendingSecrets:
    """The secrets of a request, checked by their forms' rules; raises `PlatformError`."""
    held = {}
    for slug, named in secrets.items():
        if (step := BY_SLUG.get(slug)) is None:
            raise PlatformError(f"There is no step {slug[:_LONGEST_NAME]!a}")
        held[slug] = HeldSecrets({name: step.secret(name, text) for name, text in named.items()})
    return PendingSecrets(held)


def _put_step(paths: Paths, step: str, *, completed_at: str | None) -> None:
    """Set the wizard's step; a wizard whose file cannot be used starts over anyway."""
    path = paths.path_of(WIZARD_STATE)
    state = StateFile(path, STEPS).stored()
    if state is not None:
        state = msgspec.structs.replace(state, step=step, completed_at=completed_at)
        record_file.replace(path, states.render(state), mode=_STATE_MODE, owner=owner_of(path))
