"""Setting up without the wizard: as the root helper, from a terminal, or once more.

Answers are read only in the wizard's own file. Secrets, which the wizard holds in memory,
come only with a request to the root helper.
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
from wizard_app.setup.pending import Held, PendingSecrets
from wizard_app.setup.plan.plan import Plan, build_plan, plan_digest
from wizard_app.setup.serving_file import owner_of
from wizard_app.setup.snapshot import Snapshot
from wizard_app.setup.state import DONE, REVIEW
from wizard_app.setup.state_file import StateFile
from wizard_app.setup.steps import STEPS

_STATE_MODE = 0o600
_LONGEST_NAME = 80


def _apply_as_root(paths: Paths, request: SetupRequest, on_progress: OnProgress) -> SetUp:
    """Carry out the plan that was shown, or nothing at all.

    Raises what `execute` raises, and `PlatformError` when the device is set up already,
    something is missing, or the plan is not the one that was shown. A device that was set up
    from the same answers counts as done: the first answer may have been lost.
    """
    with alone(paths):
        snapshot = snapshot_of(paths, _held(request.secrets))
        if (before := completion(paths)) is not None and before.is_of(snapshot.state):
            return SetUp(0)
        if before is not None or snapshot.state.step == DONE:
            raise PlatformError(
                "This device is set up already",
                hint="To have it ask its questions again, run: sudo platformctl setup again",
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
    """Set up what was answered, with the secrets that are on the device.

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
    """Have the device ask its questions again; what was answered is kept.

    Raises `PlatformError`, also when it asks already.
    """
    with alone(paths):
        state = StateFile(paths.writable(WIZARD_STATE), STEPS).stored()
        if not paths.has(SETUP_COMPLETE) and (state is None or state.step != DONE):
            raise PlatformError("This device is not set up yet: its wizard asks already")
        _put_step(paths, REVIEW, completed_at=None)
        # Last, so that until then no wizard starts.
        take_back(paths)


def _checked(snapshot: Snapshot, request: SetupRequest) -> Plan:
    """The plan, if it is the one that was shown and nothing is missing."""
    if lacks := snapshot.lacks():
        raise PlatformError(Sentence("{step}: {why}", step=lacks[0].step.short, why=lacks[0].why))
    used = snapshot.used_secrets()
    if any(named.keys() - used.get(slug, {}).keys() for slug, named in request.secrets.items()):
        raise PlatformError("A secret was sent that nothing of the plan needs")
    planned = build_plan(snapshot)
    if plan_digest(planned) != request.digest:
        raise PlatformError(
            "What setting up would do is not what was shown",
            hint="Look at the review page once more, or see it with: sudo platformctl setup plan",
        )
    return planned


def _held(secrets: SecretTexts) -> PendingSecrets:
    """The secrets of a request, checked by the rules of their forms; raises `PlatformError`."""
    held = {}
    for slug, named in secrets.items():
        if (step := BY_SLUG.get(slug)) is None:
            raise PlatformError(f"There is no step {slug[:_LONGEST_NAME]!a}")
        held[slug] = Held({name: step.secret(name, text) for name, text in named.items()})
    return PendingSecrets(held)


def _put_step(paths: Paths, step: str, *, completed_at: str | None) -> None:
    """Have the wizard stand at that step; one whose file cannot be used begins anew anyway."""
    path = paths.writable(WIZARD_STATE)
    state = StateFile(path, STEPS).stored()
    if state is not None:
        state = msgspec.structs.replace(state, step=step, completed_at=completed_at)
        record_file.replace(path, states.render(state), mode=_STATE_MODE, owner=owner_of(path))
