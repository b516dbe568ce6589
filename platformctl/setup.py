"""Setting up, from beside the wizard: its plan, how far it came, and doing it as root.

Answers come from the wizard's own file, and from nowhere else; secrets, which are in the
wizard's memory alone, only with a request to the root helper.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from platform_common.decoding import shaped
from platform_common.errors import PlatformError
from platform_common.paths import Found, Paths
from platform_common.records import record_file
from platform_common.records.record_file import MissingRecordError
from platform_common.sentence import Sentence
from platform_common.setup import (
    Missing,
    SetUp,
    SetupAction,
    SetupPlan,
    SetupRequest,
    SetupStatus,
    TriedAction,
)
from wizard_app import state as states
from wizard_app.actions import TITLES, Phase
from wizard_app.apply import execute
from wizard_app.journal import Try, read_try
from wizard_app.launching import ServingFile
from wizard_app.machine import Machine
from wizard_app.pending import Held, PendingSecrets
from wizard_app.plan import Item, build_plan, mark
from wizard_app.runners import on_machine
from wizard_app.settings import JOURNAL, WizardSettings
from wizard_app.standing import Kept, Lack, Standing
from wizard_app.state import DONE
from wizard_app.steps import STEPS

_STEPS = {step.slug: step for step in STEPS}


def plan(paths: Paths) -> tuple[SetupPlan, list[str]]:
    """What applying the wizard's answers will do, and which records could not be used.

    It is what the review page shows. Raises `PlatformError` when there are no answers.
    """
    standing = _standing(paths)
    planned = build_plan(standing)
    shown = SetupPlan(
        step=standing.state.step,
        mark=mark(planned),
        lacks=_missing([*standing.unanswered(), *standing.unfit()]),
        secrets=tuple(_secrets(standing)),
        actions=tuple(map(_shown, planned)),
    )
    return shown, standing.machine.problems


def heading(phase: str) -> str:
    """What a phase of the plan is called."""
    return str(next(title for one, title in TITLES.items() if _slug(one) == phase))


def status(paths: Paths) -> SetupStatus:
    """How far the last try came; raises `PlatformError` when that cannot be read."""
    last = read_try(paths.writable(JOURNAL))
    if last is None:
        if paths.has(JOURNAL):
            raise PlatformError(
                f"{paths.writable(JOURNAL)} cannot be read", hint="Run this as root."
            )
        return SetupStatus("none")
    tried = tuple(TriedAction(one.id, one.what, one.state, one.at, one.why) for one in last.entries)
    return SetupStatus(_outcome(last), last.at, tried)


def apply_asked(paths: Paths, request: SetupRequest) -> SetUp:
    """The helper's operation `setup-apply`: do what was shown, or nothing at all.

    Raises what `execute` raises, and `PlatformError` when the device is set up already,
    something is missing, or the plan is not the one that was shown.
    """
    standing = _standing(paths, _held(request.secrets))
    if standing.state.step == DONE:
        raise PlatformError("This device is set up already")
    for lack in standing.lacks():
        raise PlatformError(Sentence("{step}: {why}", step=lack.step.short, why=lack.why))
    planned = build_plan(standing)
    used = {id(secret) for item in planned for secret in item.action.secrets}
    given = (secret for slug in _STEPS for secret in standing.pending.of(slug).secrets.values())
    if not all(id(secret) in used for secret in given):
        raise PlatformError("A secret was sent that nothing of the plan needs")
    if mark(planned) != request.mark:
        raise PlatformError(
            "What setting up would do is not what was shown",
            hint="Look at the review page once more, or see it with: sudo platformctl setup plan",
        )
    execute(planned, paths, on_machine(paths), setup=standing.state.started_at)
    return SetUp(len(planned))


def _standing(paths: Paths, pending: PendingSecrets = PendingSecrets()) -> Standing:  # noqa: B008 - never changed
    """Where the wizard of this device stands by its file; raises `PlatformError`."""
    settings = WizardSettings(paths=paths, device=paths, production=True)
    try:
        state = record_file.read(Found(settings.state_file), lambda data: states.parse(data, STEPS))
    except MissingRecordError as error:
        raise PlatformError(
            f"{error.message}: nothing has been answered yet",
            hint="Start the wizard with: wizard-app serve --production",
        ) from error
    return Standing(_STEPS, Machine(_as_served(settings)), Kept(state, pending))


def _as_served(settings: WizardSettings) -> WizardSettings:
    """The settings with the address on which the wizard is served now, if it is."""
    serving = None
    with contextlib.suppress(PlatformError):
        serving = ServingFile(settings.token_file).read()
    if serving is None:
        return settings
    return msgspec.structs.replace(settings, bind=serving.bind, behind_proxy=serving.behind_proxy)


def _held(secrets: Mapping[str, Mapping[str, str]]) -> PendingSecrets:
    """The secrets of a request, each looked at as its form would; raises `PlatformError`."""
    held = {}
    for slug, named in secrets.items():
        if (step := _STEPS.get(slug)) is None:
            raise PlatformError(f"There is no step {slug!a}")
        held[slug] = Held({name: step.secret(name, text) for name, text in named.items()})
    return PendingSecrets(held)


def _missing(lacks: Iterable[Lack]) -> tuple[Missing, ...]:
    order = list(_STEPS)
    found = sorted(lacks, key=lambda lack: order.index(lack.step.slug))
    return tuple(Missing(lack.step.slug, str(lack.why)) for lack in found)


def _secrets(standing: Standing) -> Iterator[Missing]:
    for step in standing.answered():
        if not standing.is_stored(step):
            for name in step.needs(standing.answer(step), standing.asked(step)):
                yield Missing(step.slug, str(name))


def _shown(item: Item) -> SetupAction:
    action = item.action
    said = {"phase": _slug(item.phase), "id": action.id, "said": str(action.said)}
    return shaped({**action.shown, **said, "kept": item.kept}, SetupAction)


def _slug(phase: Phase) -> str:
    return phase.name.lower().replace("_", "-")


def _outcome(last: Try) -> str:
    if last.ended:
        return "done"
    return "failed" if any(one.state == "failed" for one in last.entries) else "unfinished"
