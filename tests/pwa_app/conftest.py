"""A dashboard in this process, and the control CLI that it calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from pwa_app.app import create_app
from pwa_app.settings import PwaSettings
from pwa_app.single_flight import SingleFlight
from tests.support.control_cli import FakeCtl
from tests.support.devices import Device

Dashboard = Callable[..., FlaskClient]


@pytest.fixture
def ctl(tmp_path: Path) -> FakeCtl:
    """A stand-in for the control CLI; a call fails unless a test has given it an answer."""
    return FakeCtl(tmp_path / "ctl")


@pytest.fixture
def dashboard(device: Device, ctl: FakeCtl) -> Dashboard:
    """Make a client of a dashboard on `device`; keywords are added to its environment."""

    def make(**environment: str) -> FlaskClient:
        variables = ctl.environment | {"PLATFORM_ROOT": str(device.root)} | environment
        return create_app(PwaSettings.from_env(variables)).test_client()

    return make


@pytest.fixture
def client(dashboard: Dashboard) -> FlaskClient:
    """A client of a dashboard that calls `ctl`."""
    return dashboard()


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[Hashable]:
    """The keys of the shared work that requests have asked for so far, including joined runs."""
    asked: list[Hashable] = []
    join = SingleFlight.join

    def noting(flight: SingleFlight, key: Hashable, work: Callable[[], Any]) -> Future[Any]:
        run = join(flight, key, work)
        asked.append(key)
        return run

    monkeypatch.setattr(SingleFlight, "join", noting)
    return asked
