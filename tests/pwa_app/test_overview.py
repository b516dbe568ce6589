"""The five calls of the dashboard."""

from __future__ import annotations

from flask.testing import FlaskClient

from tests.support.control_cli import FakeCtl


def test_the_dashboard_makes_the_five_calls_and_no_other(client: FlaskClient, ctl: FakeCtl) -> None:
    assert client.get("/app/dashboard").status_code == 200
    assert sorted(ctl.words()) == [
        "cost --json",
        "doctor --json",
        "limits --json",
        "status --json",
        "version --json",
    ]
