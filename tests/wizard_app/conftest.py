"""A wizard in this process, in dev mode, without its launch token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.support.devices import Device
from tests.support.small_steps import ColourStep, WordStep
from tests.support.wizard_apply import Commands, wizard_with
from tests.support.wizard_states import ANSWERS, answer
from tests.wizard_app.step_pages import StepPage
from wizard_app.app import create_app
from wizard_app.setup.settings import WizardSettings
from wizard_app.setup.steps import STEPS
from wizard_app.setup.steps.base import AnyStep

MakeWizard = Callable[..., FlaskClient]
MakeReady = Callable[..., FlaskClient]
MakeStep = Callable[[], StepPage]
SMALL = (ColourStep(), WordStep())


class Clock:
    """A clock that only changes when it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder to which a wizard in dev mode writes."""
    return tmp_path / "dev-out"


@pytest.fixture
def state_file(out: Path) -> Path:
    """The state file of that wizard."""
    return out / "var/lib/platform/wizard-state.json"


@pytest.fixture
def environment(device: Device, out: Path) -> dict[str, str]:
    """Settings of a wizard that reads from `device`, writes to `out` and asks for no token."""
    return {"PLATFORM_ROOT": str(device.root), "WIZARD_DEV_OUT": str(out), "WIZARD_NO_TOKEN": "1"}


@pytest.fixture
def wizard(environment: dict[str, str]) -> MakeWizard:
    """Make a client of a wizard that writes to `out`; keywords are added to its environment.

    `steps` replace the usual ones. The wizard reads from `out`, then from `device`, then from the
    shipped defaults.
    """

    def make(*, steps: Sequence[AnyStep] = STEPS, **more: str) -> FlaskClient:
        return create_app(WizardSettings.from_env(environment | more), steps=steps).test_client()

    return make


@pytest.fixture
def small(wizard: MakeWizard) -> FlaskClient:
    """A client of a wizard with two small steps."""
    return wizard(steps=SMALL)


@pytest.fixture
def ready(environment: dict[str, str]) -> MakeReady:
    """Make a client of a wizard with all answers; `Commands` replace the real ones.

    With `answered=False` the wizard continues with what an earlier one stored.
    """

    def make(commands: Commands | None = None, *, answered: bool = True) -> FlaskClient:
        app = wizard_with(commands or Commands(), environment)
        if answered:
            answer(app, ANSWERS)
        return app.test_client()

    return make


@pytest.fixture
def client(wizard: MakeWizard) -> FlaskClient:
    """A client of a wizard without answers."""
    return wizard()


@pytest.fixture
def steps(wizard: MakeWizard, state_file: Path, request: pytest.FixtureRequest) -> MakeStep:
    """Make a new wizard with the stored answers; return the page of the module's `SLUG`."""
    return lambda: StepPage(wizard(), request.module.SLUG, state_file)


@pytest.fixture
def step(client: FlaskClient, state_file: Path, request: pytest.FixtureRequest) -> StepPage:
    """The page of the module's `SLUG` in the wizard of `client`."""
    return StepPage(client, request.module.SLUG, state_file)


@pytest.fixture
def colour(small: FlaskClient, state_file: Path) -> StepPage:
    """The first page of a wizard with two small steps."""
    return StepPage(small, "colour", state_file)


@pytest.fixture
def word(small: FlaskClient, state_file: Path) -> StepPage:
    """The second page of a wizard with two small steps."""
    return StepPage(small, "word", state_file)
