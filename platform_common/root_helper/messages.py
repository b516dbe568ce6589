"""Setting up the device, as our programs speak of it to each other.

The wizard has a plan of its own, of things that act; here is what others see of it, of
how far it came, and what the root helper is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

# The name of the root helper's operation.
SETUP_APPLY = "setup-apply"
# By the slug of the step and the name of the secret.
SecretTexts = Mapping[str, Mapping[str, str]]


class KeyFile(Struct, frozen=True):
    """A file that holds a secret while a command runs."""

    path: str = ""
    mode: str = ""


class SetupAction(Struct, frozen=True):
    """One thing that setting up does; what does not belong to its kind is empty.

    `action` is write, set, add-keys, remove or run. `kept` when it was done before a
    restart of the wizard and is not done again. Secrets are masked.
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
    """What is missing, and of which step."""

    step: str = ""
    what: str = ""


class SetupPlan(Struct, frozen=True):
    """`setup plan`: all that applying the answers will do, in its order.

    `step` is where the wizard stands; `mark` tells this plan from any other. `lacks` must
    be answered first; `secrets` are not on the device, so that the wizard must hold them.
    """

    step: str = ""
    mark: str = ""
    lacks: tuple[Missing, ...] = ()
    secrets: tuple[Missing, ...] = ()
    actions: tuple[SetupAction, ...] = ()


class TriedAction(Struct, frozen=True):
    """What became of an action: `state` is waiting, running, done, failed or kept."""

    id: str = ""
    said: str = ""
    state: str = ""
    at: str = ""
    why: str = ""


ActionState = Literal["running", "done", "failed"]


class SetupProgress(Struct, frozen=True):
    """One action while a plan is carried out: its number from 1, and its state.

    `of` is the number of all actions; `why` is the reason of a failure.
    """

    number: int
    of: int
    id: str
    said: str
    state: ActionState = "running"
    why: str = ""


class SetupStatus(Struct, frozen=True):
    """`setup status`: whether the device is set up, and how far the last try to came.

    `outcome` is none, unfinished, failed or done; unfinished is what goes on, or was
    interrupted. Once `complete`, no wizard starts any more; `completed_at` is empty where
    that is not told.
    """

    complete: bool = False
    completed_at: str = ""
    outcome: str = ""
    began_at: str = ""
    actions: tuple[TriedAction, ...] = ()


class SetupRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What the root helper needs beside the answers, which it reads itself.

    `mark` is the digest of the plan that was shown.
    """

    mark: str
    secrets: SecretTexts


class SetUp(Struct, frozen=True):
    """That the device is set up; `actions` is how many were done."""

    actions: int = 0
