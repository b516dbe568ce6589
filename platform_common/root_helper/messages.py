"""The messages about setup between our programs.

The wizard's own plan consists of executable actions; these types describe the plan and its
progress to others, and the request to the root helper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

# The name of the root helper's operation.
SETUP_APPLY = "setup-apply"
# By step slug and name of the secret.
SecretTexts = Mapping[str, Mapping[str, str]]


class KeyFile(Struct, frozen=True):
    """A file that holds a secret while a command runs."""

    path: str = ""
    mode: str = ""


class SetupAction(Struct, frozen=True):
    """One action of setup; members that do not belong to its kind are empty.

    `action` is write, set, add-keys, remove or run. `kept` if it was done before a restart of the
    wizard and is not repeated. Secrets are masked.
    """

    phase: str = ""
    id: str = ""
    said: str = ""
    kept: bool = False
    action: str = ""
    path: str = ""
    mode: str = ""
    owner: str = ""
    content: str = ""
    variables: Mapping[str, str] = {}
    keys: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    timeout_s: float = 0.0
    key_file: KeyFile | None = None


class Missing(Struct, frozen=True):
    """A missing answer or secret, and its step."""

    step: str = ""
    what: str = ""


class SetupPlan(Struct, frozen=True):
    """`setup plan`: everything that applying the answers will do, in order.

    `step` is the wizard's current step; `mark` is the digest of the plan. `lacks` must be answered
    first; `secrets` are not on the device yet, so the wizard must have them.
    """

    step: str = ""
    mark: str = ""
    lacks: tuple[Missing, ...] = ()
    secrets: tuple[Missing, ...] = ()
    actions: tuple[SetupAction, ...] = ()


class TriedAction(Struct, frozen=True):
    """An action and its state: waiting, running, done, failed or kept."""

    id: str = ""
    said: str = ""
    state: str = ""
    at: str = ""
    why: str = ""


ActionState = Literal["running", "done", "failed"]


class SetupProgress(Struct, frozen=True):
    """Progress of one action of a running plan: its number from 1, and its state.

    `of` is the number of all actions; `why` is the reason of a failure.
    """

    number: int
    of: int
    id: str
    said: str
    state: ActionState = "running"
    why: str = ""


class SetupStatus(Struct, frozen=True):
    """`setup status`: whether the device is set up, and how far the last attempt came.

    `outcome` is none, unfinished (running or interrupted), failed or done. Once `complete`, no
    wizard starts; `completed_at` is empty if unknown.
    """

    complete: bool = False
    completed_at: str = ""
    outcome: str = ""
    began_at: str = ""
    actions: tuple[TriedAction, ...] = ()


class SetupRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the root helper, which reads the answers itself.

    `mark` is the digest of the plan that was shown.
    """

    mark: str
    secrets: SecretTexts


class SetUp(Struct, frozen=True):
    """The device is set up; `actions` is the number of executed actions."""

    actions: int = 0
