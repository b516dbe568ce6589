"""The ports by which who sets the device up comes in, which no firewall closes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from platform_common.paths import Paths
from tests.support.devices import Device
from tests.support.wizard_states import ANSWERS, answer
from wizard_app.app import create_app
from wizard_app.settings import WizardSettings
from wizard_app.ways_in import ways_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where sshd of a device in a folder is told what to do."""
    made = tmp_path / "etc/ssh/sshd_config.d"
    made.mkdir(parents=True)
    return made.parent


@pytest.fixture
def settings(tmp_path: Path) -> WizardSettings:
    paths = Paths(tmp_path, {})
    return WizardSettings(paths=paths, device=paths)


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("", set()),
        ("Port 2222\n", {2222}),
        ('port=2222\nPORT "2223" # why\n\tPort\t2224', {2222, 2223, 2224}),
        (
            "ListenAddress 0.0.0.0:2222\nListenAddress [::]:2223\nListenAddress fe80::80\n",
            {2222, 2223},
        ),
        ("#Port 2222\nGatewayPorts 2223\nPort 0\nPort 65536\nPort 123456\nPort ssh\n", set()),
    ],
)
def test_sshd_is_let_in_where_it_listens(
    folder: Path, settings: WizardSettings, text: str, ports: set[int]
) -> None:
    for path in (folder / "sshd_config", folder / "sshd_config.d/a.conf"):
        path.write_text(text)
        found = ways_in(settings)
        assert (set(found.ports), found.problems) == (ports, ())
        path.unlink()


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("[Socket]\nListenStream=\nListenStream=2222\n", {2222}),
        (
            "ListenStream = 0.0.0.0:2222\nListenStream=[::]:2223 \nListenStream=[fe80::1]:2224",
            {2222, 2223, 2224},
        ),
        ("#ListenStream=2222\nListenStream=/run/sshd.sock\nListenStream=vsock::22\n", set()),
        ("ListenStream=0\nListenStream=65536\nListenDatagram=2222\nlistenstream=2222\n", set()),
    ],
)
def test_sshd_is_let_in_where_systemd_listens_for_it(
    tmp_path: Path, settings: WizardSettings, text: str, ports: set[int]
) -> None:
    for name in ("ssh.socket", "ssh.socket.d/override.conf"):
        path = tmp_path / "etc/systemd/system" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        found = ways_in(settings)
        assert (set(found.ports), found.problems) == (ports, ())
        path.unlink()


def test_the_wizard_is_let_in_where_it_is_served(settings: WizardSettings) -> None:
    replace = msgspec.structs.replace
    assert ways_in(replace(settings, bind="[::]:8090")).ports == {8090}
    assert ways_in(replace(settings, bind="0.0.0.0:8090 [::1]:443 unix:/run/a:1")).ports == {
        443,
        8090,
    }
    assert ways_in(replace(settings, bind="unix:/run/a.sock")).ports == set()
    assert ways_in(replace(settings, bind="127.0.0.1:80", behind_proxy=True)).ports == {80, 443}


def test_no_ssh_server_is_no_problem(settings: WizardSettings) -> None:
    assert ways_in(settings) == (frozenset(), ())


def test_what_cannot_be_read_is_told_before_anything_is_done(device: Device, out: Path) -> None:
    # In place of a file of root's alone, which tests that run as root would read.
    (out / "etc/ssh/sshd_config.d/50-cloud-init.conf").mkdir(parents=True)
    environment = {
        "PLATFORM_ROOT": str(device.root),
        "WIZARD_DEV_OUT": str(out),
        "WIZARD_NO_TOKEN": "1",
    }
    app = create_app(WizardSettings.from_env(environment))
    answer(app, ANSWERS)
    page = app.test_client().get("/wizard/review").text
    assert "50-cloud-init.conf is not a regular file: the firewall opens no port for SSH" in page
