"""The wizard's plan and the progress of the last attempt, without a running wizard.

Answers are only read from the wizard's own file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from platform_common.errors import PlatformError
from platform_common.formats.decode import shaped
from platform_common.paths import Found, Paths
from platform_common.records import record_file
from platform_common.records.record_file import MissingRecordError
from platformctl.answers import AttemptedAction, Missing, SetupAction, SetupPlan, SetupStatus
from wizard_app.setup import state as states
from wizard_app.setup.apply.completion import completion
from wizard_app.setup.apply.journal import Attempt, read_attempt
from wizard_app.setup.device_facts import DeviceFacts
from wizard_app.setup.pending import PendingSecrets
from wizard_app.setup.plan.phases import TITLES, Phase
from wizard_app.setup.plan.plan import Item, build_plan, plan_digest
from wizard_app.setup.serving_file import ServingFile
from wizard_app.setup.settings import JOURNAL, WizardSettings
from wizard_app.setup.snapshot import Snapshot, StoredState
from wizard_app.setup.state import DONE
from wizard_app.setup.steps import STEPS

BY_SLUG = {step.slug: step for step in STEPS}


def plan(paths: Paths) -> tuple[SetupPlan, list[str]]:
    """Return the plan that the review page shows, and problems with records.

    Raises `PlatformError` if there are no answers.
    """
    snapshot = snapshot_of(paths)
    planned = build_plan(snapshot)
    shown = SetupPlan(
        step=DONE if completion(paths) else snapshot.state.step,
        digest=plan_digest(planned),
        lacks=tuple(
            Missing(lack.step.slug, str(lack.why)) for lack in snapshot.lacks(with_secrets=False)
        ),
        secrets=tuple(_secrets(snapshot)),
        actions=tuple(map(_shown, planned)),
    )
    return shown, snapshot.machine.problems


def heading(phase: str) -> str:
    """The heading of a phase."""
    return str(next(title for one, title in TITLES.items() if _slug(one) == phase))


def status(paths: Paths) -> SetupStatus:
    """How far the last attempt came; raises `PlatformError` if that cannot be read."""
    last, complete = read_attempt(paths.path_of(JOURNAL)), completion(paths)
    is_complete, completed_at = complete is not None, complete.completed_at if complete else ""
    if last is None:
        if paths.has(JOURNAL):
            raise PlatformError(
                f"{paths.path_of(JOURNAL)} cannot be read", hint="Run this as root."
            )
        return SetupStatus(is_complete, completed_at, "none")
    tried = tuple(
        AttemptedAction(one.id, one.what, one.state, one.at, one.why) for one in last.entries
    )
    return SetupStatus(is_complete, completed_at, _outcome(last), last.at, tried)


def snapshot_of(paths: Paths, pending: PendingSecrets = PendingSecrets()) -> Snapshot:  # noqa: B008 - never changed
    """The state of this device's wizard, from its file; raises `PlatformError`."""
    settings = WizardSettings(paths=paths, device=paths, production=True)
    try:
        state = record_file.read(Found(settings.state_file), lambda data: states.parse(data, STEPS))
    except MissingRecordError as error:
        raise PlatformError(
            f"{error.message}: nothing has been answered yet",
            hint="Start the wizard with: wizard-app serve --production",
        ) from error
    return Snapshot(BY_SLUG, DeviceFacts(_as_served(settings)), StoredState(state, pending))


def _as_served(settings: WizardSettings) -> WizardSettings:
    """The settings, with the address of the running wizard if there is one."""
    serving = None
    with contextlib.suppress(PlatformError):
        serving = ServingFile(settings.token_file).read()
    if serving is None:
        return settings
    return msgspec.structs.replace(settings, bind=serving.bind, behind_proxy=serving.behind_proxy)


def _secrets(snapshot: Snapshot) -> Iterator[Missing]:
    for step in snapshot.answered():
        if not snapshot.is_stored(step):
            for name in step.needs(snapshot.answer(step), snapshot.asked(step)):
                yield Missing(step.slug, str(name))


def _shown(item: Item) -> SetupAction:
    action = item.action
    said = {"phase": _slug(item.phase), "id": action.id, "said": str(action.said)}
    return shaped({**action.shown, **said, "kept": item.kept}, SetupAction)


def _slug(phase: Phase) -> str:
    return phase.name.lower().replace("_", "-")


def _outcome(last: Attempt) -> str:
    if last.ended:
        return "done"
    return "failed" if any(one.state == "failed" for one in last.entries) else "unfinished"
