"""The ports that setup itself and SSH use, which the firewall must not close."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from flask.testing import FlaskClient

from platform_common.paths import Paths
from tests.support.wizard_states import ANSWERS, answer
from wizard_app.setup.plan.open_ports import open_ports
from wizard_app.setup.settings import WizardSettings


@pytest.fixture
def settings(tmp_path: Path) -> WizardSettings:
    paths = Paths(tmp_path, {})
    return WizardSettings(paths=paths, device=paths)


SSHD = ("etc/ssh/sshd_config", "etc/ssh/sshd_config.d/a.conf")
SOCKET = ("etc/systemd/system/ssh.socket", "etc/systemd/system/ssh.socket.d/override.conf")
_LISTENING = "ListenAddress 0.0.0.0:2222\nListenAddress [::]:2223\nListenAddress fe80::80\n"
_STREAMS = "ListenStream = 0.0.0.0:2222\nListenStream=[::]:2223 \nListenStream=[fe80::1]:2224"


@pytest.mark.parametrize(
    ("places", "text", "ports"),
    [
        (SSHD, "", set()),
        (SSHD, "Port 2222\n", {2222}),
        (SSHD, 'port=2222\nPORT "2223" # why\n\tPort\t2224', {2222, 2223, 2224}),
        (SSHD, _LISTENING, {2222, 2223}),
        (SSHD, "#Port 22\nGatewayPorts 2223\nPort 0\nPort 65536\nPort 123456\nPort ssh\n", set()),
        (SOCKET, "[Socket]\nListenStream=\nListenStream=2222\n", {2222}),
        (SOCKET, _STREAMS, {2222, 2223, 2224}),
        (SOCKET, "#ListenStream=22\nListenStream=/run/sshd.sock\nListenStream=vsock::22\n", set()),
        (SOCKET, "ListenStream=0\nListenStream=65536\nListenDatagram=22\nlistenstream=2\n", set()),
    ],
)
def test_the_ports_of_sshd_or_of_its_systemd_socket_stay_open(
    tmp_path: Path, settings: WizardSettings, places: tuple[str, ...], text: str, ports: set[int]
) -> None:
    for place in places:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        found = open_ports(settings)
        assert (set(found.ports), found.problems) == (ports, ())
        path.unlink()


def test_the_ports_of_the_wizard_stay_open(settings: WizardSettings) -> None:
    replace = msgspec.structs.replace
    assert open_ports(replace(settings, bind="[::]:8090")).ports == {8090}
    assert open_ports(replace(settings, bind="0.0.0.0:8090 [::1]:443 unix:/run/a:1")).ports == {
        443,
        8090,
    }
    assert open_ports(replace(settings, bind="unix:/run/a.sock")).ports == set()
    assert open_ports(replace(settings, bind="127.0.0.1:80", behind_proxy=True)).ports == {80, 443}


def test_a_missing_ssh_server_is_not_a_problem(settings: WizardSettings) -> None:
    assert open_ports(settings) == (frozenset(), ())


def test_unreadable_settings_are_reported_before_setup(client: FlaskClient, out: Path) -> None:
    # A folder, because tests that run as root could read any file.
    (out / "etc/ssh/sshd_config.d/50-cloud-init.conf").mkdir(parents=True)
    answer(client.application, ANSWERS)
    page = client.get("/wizard/review").text
    assert "50-cloud-init.conf is not a regular file: the firewall opens no SSH port" in page
