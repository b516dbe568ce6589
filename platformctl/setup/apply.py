"""Setting up from beside the wizard: as the root helper, by hand, or once more.

Answers come from the wizard's own file, and from nowhere else; secrets, which are in the
wizard's memory alone, only with a request to the root helper.
"""

from __future__ import annotations

import contextlib
import grp
import pwd
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from platform_common import clock
from platform_common.errors import PlatformError
from platform_common.formats.decode import shaped
from platform_common.message import Sentence
from platform_common.paths import SETUP_COMPLETE, WIZARD_STATE, Found, Paths
from platform_common.records import record_file
from platform_common.records.record_file import RecordError
from platform_common.root_helper import client as control_helper
from platform_common.root_helper.messages import OPERATION, SetUp, SetupProgress, SetupRequest
from platform_common.storage.atomic_write import Owner
from platformctl.setup.plan import BY_SLUG, standing_of
from wizard_app.setup import state as states
from wizard_app.setup.apply.command_runners import on_machine
from wizard_app.setup.apply.completion import alone, complete, completion, take_back
from wizard_app.setup.apply.executor import Tell, execute
from wizard_app.setup.apply.helper_client import PLACES, limit_s
from wizard_app.setup.pending import Held, PendingSecrets
from wizard_app.setup.plan.plan import Plan, build_plan, mark
from wizard_app.setup.snapshot import Standing
from wizard_app.setup.state import DONE, REVIEW, WizardState
from wizard_app.setup.steps import STEPS

_STATE_MODE = 0o600
_LONGEST_NAME = 80


def apply_asked(
    paths: Paths, request: SetupRequest, tell: Callable[[SetupProgress], None]
) -> SetUp:
    """The helper's operation `setup-apply`: do what was shown, or nothing at all.

    Raises what `execute` raises, and `PlatformError` when the device is set up already,
    something is missing, or the plan is not the one that was shown. For a device that was
    set up just so it is done: the answer may have been lost.
    """
    with alone(paths):
        standing = standing_of(paths, _held(request.secrets))
        if (before := completion(paths)) is not None and before.is_of(standing.state):
            return SetUp(0)
        if before is not None or standing.state.step == DONE:
            raise PlatformError(
                "This device is set up already",
                hint="To have it ask its questions again, run: sudo platformctl setup again",
            )
        planned = _checked(standing, request)
        execute(
            planned,
            paths,
            on_machine(paths),
            setup=standing.state.started_at,
            tell=_teller(planned, tell),
        )
        complete(paths, standing, planned)
    return SetUp(len(planned))


def apply(paths: Paths, tell: Callable[[SetupProgress], None]) -> SetUp:
    """Do what was answered, with the secrets that are on the device; raises as `apply_asked`."""
    planned = build_plan(standing_of(paths))
    request, socket = SetupRequest(mark(planned), {}), control_helper.socket_for(paths, *PLACES)
    if socket is None:
        done = apply_asked(paths, request, tell)
    else:
        done = control_helper.ask(
            socket,
            OPERATION,
            msgspec.to_builtins(request),
            SetUp,
            timeout_s=limit_s(planned),
            tell=lambda told: tell(shaped(told, SetupProgress)),
        )
    _put_step(paths, DONE, completed_at=clock.now())
    return done


def again(paths: Paths) -> None:
    """Have the device ask its questions again; what was answered is kept.

    Raises `PlatformError`, also when it asks already.
    """
    with alone(paths):
        if not paths.has(SETUP_COMPLETE) and _step(paths) != DONE:
            raise PlatformError("This device is not set up yet: its wizard asks already")
        _put_step(paths, REVIEW, completed_at=None)
        # Last, so that until then no wizard starts.
        take_back(paths)


def _checked(standing: Standing, request: SetupRequest) -> Plan:
    """The plan, if it is what was asked for and all that it needs is there."""
    for lack in standing.lacks():
        raise PlatformError(Sentence("{step}: {why}", step=lack.step.short, why=lack.why))
    planned = build_plan(standing)
    used = {id(secret) for item in planned for secret in item.action.secrets}
    given = (secret for slug in BY_SLUG for secret in standing.pending.of(slug).secrets.values())
    if not all(id(secret) in used for secret in given):
        raise PlatformError("A secret was sent that nothing of the plan needs")
    if mark(planned) != request.mark:
        raise PlatformError(
            "What setting up would do is not what was shown",
            hint="Look at the review page once more, or see it with: sudo platformctl setup plan",
        )
    return planned


def _held(secrets: Mapping[str, Mapping[str, str]]) -> PendingSecrets:
    """The secrets of a request, each looked at as its form would; raises `PlatformError`."""
    held = {}
    for slug, named in secrets.items():
        if (step := BY_SLUG.get(slug)) is None:
            raise PlatformError(f"There is no step {slug[:_LONGEST_NAME]!a}")
        held[slug] = Held({name: step.secret(name, text) for name, text in named.items()})
    return PendingSecrets(held)


def _teller(plan: Plan, tell: Callable[[SetupProgress], None]) -> Tell:
    def told(number: int, state: str, why: str) -> None:
        action = plan[number].action
        tell(SetupProgress(number + 1, len(plan), action.id, str(action.said), state, why))

    return told


def _step(paths: Paths) -> str:
    try:
        return record_file.read(Found(paths.writable(WIZARD_STATE)), _parsed).step
    except RecordError:
        return ""


def _parsed(data: bytes) -> WizardState:
    return states.parse(data, STEPS)


def _put_step(paths: Paths, step: str, *, completed_at: str | None) -> None:
    """Have the wizard stand at that step; one whose file cannot be used begins anew anyway."""
    path = paths.writable(WIZARD_STATE)
    with contextlib.suppress(RecordError):
        state = record_file.read(Found(path), _parsed)
        state = msgspec.structs.replace(state, step=step, completed_at=completed_at)
        record_file.replace(path, states.render(state), mode=_STATE_MODE, owner=_owner(path))


def _owner(path: Path) -> Owner | None:
    """Whose file it is, which it is to stay."""
    with contextlib.suppress(OSError, KeyError):
        status = path.lstat()
        return Owner(pwd.getpwuid(status.st_uid)[0], grp.getgrgid(status.st_gid)[0])
    return None
