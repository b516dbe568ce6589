"""A wizard in this process, in dev mode, without its launch token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.support.devices import Device
from wizard_app.app import create_app
from wizard_app.settings import WizardSettings

MakeWizard = Callable[..., FlaskClient]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder that a wizard in dev mode writes to."""
    return tmp_path / "dev-out"


@pytest.fixture
def state_file(out: Path) -> Path:
    """Where that wizard keeps its answers."""
    return out / "var/lib/platform/wizard-state.json"


@pytest.fixture
def wizard(device: Device, out: Path) -> MakeWizard:
    """Make a client of a wizard that writes to `out`; keywords are more of its environment.

    What it reads comes from `out`, then from `device`, then from the shipped defaults.
    """

    def make(**environment: str) -> FlaskClient:
        variables = {
            "PLATFORM_ROOT": str(device.root),
            "WIZARD_DEV_OUT": str(out),
            "WIZARD_NO_TOKEN": "1",
        }
        return create_app(WizardSettings.from_env(variables | environment)).test_client()

    return make


@pytest.fixture
def client(wizard: MakeWizard) -> FlaskClient:
    """A client of a wizard that nothing has been answered to."""
    return wizard()
