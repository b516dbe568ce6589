"""Setting up through the root helper, for a wizard that is not root."""

from __future__ import annotations

import msgspec

from platform_common.errors import PlatformError
from platform_common.paths import LIMITS, PROFILES, PROVIDERS, SECRETS, WIZARD_STATE
from platform_common.root_helper import client as control_helper
from platform_common.root_helper.messages import OPERATION, SetUp, SetupRequest
from wizard_app.setup.apply.executor import ApplyError, Execute
from wizard_app.setup.plan.actions import RunCommand
from wizard_app.setup.plan.plan import Plan, mark
from wizard_app.setup.settings import TOKEN, WizardSettings
from wizard_app.setup.snapshot import Standing

# The helper reads these where the device has them: with another place for one of them, it
# would set up something else.
PLACES = (WIZARD_STATE, TOKEN, PROVIDERS, PROFILES, LIMITS, SECRETS)
# For all that is not a command: files, each of them durable.
_FILES_S = 120.0


def or_by_helper(settings: WizardSettings, here: Execute) -> Execute:
    """Has the root helper do a plan where there is one and we are not root, else `here`.

    Raises what `here` would.
    """

    def act(standing: Standing, plan: Plan) -> None:
        socket = control_helper.socket_for(settings.paths, *PLACES)
        if socket is None:
            return here(standing, plan)
        request = SetupRequest(mark(plan), _secrets(standing, plan))
        arguments = msgspec.to_builtins(request)
        try:
            # The pages tell what is done from the journal, which outlasts us and the helper;
            # what is told here says that there is somebody who does it.
            control_helper.ask(
                socket, OPERATION, arguments, SetUp, timeout_s=limit_s(plan), tell=lambda _: None
            )
        except PlatformError as error:
            _tell_apart(error, plan)
            raise
        return None

    return act


def _secrets(standing: Standing, plan: Plan) -> dict[str, dict[str, str]]:
    """The secrets that the plan needs, by step and name."""
    used = {id(secret) for item in plan for secret in item.action.secrets}
    held = {slug: standing.pending.of(slug).secrets for slug in standing.steps}
    return {
        slug: {name: one.reveal() for name, one in secrets.items() if id(one) in used}
        for slug, secrets in held.items()
        if secrets
    }


def _tell_apart(error: PlatformError, plan: Plan) -> None:
    """Raise the `ApplyError` that the helper told as a sentence, where it was one."""
    for item in plan:
        what = f"{item.action.said}: "
        if error.message.startswith(what):
            problem = PlatformError(error.message.removeprefix(what), hint=error.hint)
            raise ApplyError(item.action.said, problem) from error


def limit_s(plan: Plan) -> float:
    """How long doing it may take."""
    commands = (item.action for item in plan if not item.kept)
    return _FILES_S + sum(one.timeout_s for one in commands if isinstance(one, RunCommand))
