"""A device whose name is changed while somebody who came by the old one sets it up."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.devices import Device
from tests.support.wizard_apply import Commands, wizard_with
from tests.support.wizard_states import ANSWERS, answer


def test_wiz_13_who_came_by_the_old_name_sees_the_end(
    device: Device, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {
        "PLATFORM_ROOT": str(device.root),
        "WIZARD_DEV_OUT": str(out),
        "WIZARD_NO_TOKEN": "1",
    }
    with monkeypatch.context() as before:
        before.setattr(socket, "gethostname", lambda: "Old-Name")
        app = wizard_with(Commands(), environment)
    answer(app, ANSWERS)
    client, here = app.test_client(), "http://old-name:8088/"
    assert client.get("/wizard/review", base_url=here).status_code == 200
    leads = client.post("/wizard/review/apply", base_url=here).location
    assert leads == "/wizard/done"
    assert client.get(leads, base_url=here).status_code == 200
    # By the one that it has now too, and by no other.
    assert client.get(leads, base_url=f"http://{socket.gethostname()}:8088/").status_code == 200
    assert client.get(leads, base_url="http://another-name:8088/").status_code == 421
