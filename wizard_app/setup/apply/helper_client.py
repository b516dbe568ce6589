"""Setup through the root helper, for programs that are not root."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from platform_common.errors import PlatformError
from platform_common.formats.decode import shaped
from platform_common.paths import LIMITS, PROFILES, PROVIDERS, SECRETS, WIZARD_STATE
from platform_common.root_helper.client import ask, socket_for
from wizard_app.setup.apply.executor import ApplyError, Execute, OnProgress
from wizard_app.setup.apply.progress import SetupProgress
from wizard_app.setup.plan.actions import RunCommand
from wizard_app.setup.plan.plan import Plan, plan_digest
from wizard_app.setup.settings import TOKEN, WizardSettings
from wizard_app.setup.snapshot import Snapshot

# The name of the helper's operation.
SETUP_APPLY = "setup-apply"
# By the slug of the step and the name of the secret.
SecretTexts = Mapping[str, Mapping[str, str]]
# The helper reads these at their usual places, so with another place for one of them it would
# set up something else.
PLACES = (WIZARD_STATE, TOKEN, PROVIDERS, PROFILES, LIMITS, SECRETS)
# For all actions that are not commands: files, each written durably.
_FILES_S = 120.0


class SetupRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What the root helper needs beside the answers, which it reads itself.

    `digest` is that of the plan that was shown.
    """

    digest: str = field(name="mark")
    secrets: SecretTexts


class SetUp(Struct, frozen=True):
    """That the device is set up; `actions` is how many were done."""

    actions: int = 0


def or_by_helper(settings: WizardSettings, here: Execute) -> Execute:
    """Execute plans with the root helper if there is one and we are not root, else with `here`.

    Raises what `here` raises.
    """

    def execute(snapshot: Snapshot, plan: Plan, on_progress: OnProgress) -> None:
        socket = socket_for(settings.paths, *PLACES)
        if socket is None:
            here(snapshot, plan, on_progress)
        else:
            secrets = {
                slug: {name: secret.reveal() for name, secret in named.items()}
                for slug, named in snapshot.used_secrets().items()
            }
            apply_by_helper(socket, plan, secrets, on_progress)

    return execute


def apply_by_helper(
    socket: Path, plan: Plan, secrets: SecretTexts, on_progress: OnProgress
) -> SetUp:
    """Let the helper at `socket` execute `plan`; raises `ApplyError` and what `ask` raises."""
    failures: dict[str, str] = {}

    def note(tree: Any) -> None:
        progress = shaped(tree, SetupProgress)
        if progress.state == "failed":
            failures[progress.id] = progress.why
        on_progress(progress)

    arguments = msgspec.to_builtins(SetupRequest(plan_digest(plan), secrets))
    try:
        return ask(
            socket, SETUP_APPLY, arguments, SetUp, timeout_s=_limit_s(plan), on_progress=note
        )
    except PlatformError as error:
        for item in plan:
            if item.action.id in failures:
                problem = PlatformError(failures[item.action.id], hint=error.hint)
                raise ApplyError(item.action, problem) from error
        raise


def _limit_s(plan: Plan) -> float:
    """The time limit for executing the plan."""
    commands = (item.action for item in plan if not item.kept)
    return _FILES_S + sum(one.timeout_s for one in commands if isinstance(one, RunCommand))
