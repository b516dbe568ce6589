"""A served wizard that is stopped during setup."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.interop.test_apply_commands import AUTH_KEY, FORMS, PROGRAMS
from tests.support import stand_in_programs
from tests.support.stand_in_programs import HANG, OK
from tests.support.waiting import wait_until
from tests.support.web_servers import Served, served, unverified
from tests.support.wizard_visits import Visitor
from wizard_app.setup.apply.journal import read_attempt

pytestmark = pytest.mark.long

TOKEN = "cd" * 32
ENDS_S = 30


def visitor_of(wizard: Served) -> Visitor:
    """A visitor who has opened the link of a served wizard."""
    connect = partial(http.client.HTTPSConnection, timeout=60, context=unverified())
    visitor = Visitor(lambda: connect("127.0.0.1", wizard.port))
    assert visitor.ask(f"/?token={TOKEN}").status == 302
    return visitor


class Device:
    """A folder as a device, with stand-ins for the programs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "device"
        self.root.mkdir()
        self.programs = {name: stand_in_programs.install(folder / "bin", name) for name in PROGRAMS}

    def wizard(self) -> contextlib.AbstractContextManager[Served]:
        """Run a wizard in production."""
        environment = {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "PLATFORM_ROOT": str(self.root),
            "WIZARD_TOKEN": TOKEN,
            # How long the server waits for running requests; the default is 15 s.
            "GUNICORN_CMD_ARGS": "--graceful-timeout 3",
        }
        log = self.folder / "wizard.log"
        return served("wizard-app", environment, log, "--production", scheme="https")

    def kill_hanging_programs(self) -> None:
        """Kill programs that a killed wizard could not stop; on a device, systemd would."""
        for call in self.programs["tailscale"].calls():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(call["pid"], signal.SIGKILL)

    def states(self) -> list[str]:
        """The state of each action."""
        last = read_attempt(self.root / "var/lib/platform/apply-journal.jsonl")
        return [entry.state for entry in last.entries] if last else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_fs_10_and_fs_11_a_signal_during_setup_loses_nothing_and_one_press_completes_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    device = Device(tmp_path)
    key_file = device.root / "run/platform/mesh-vpn.key"
    device.programs["tailscale"].set_behaviour(HANG)
    with device.wizard() as wizard:
        visitor = visitor_of(wizard)
        visitor.answer(FORMS)
        press = threading.Thread(target=_apply, args=(visitor,), daemon=True)
        press.start()
        wait_until(lambda: device.programs["tailscale"].calls())
        wizard.process.send_signal(number)
        wizard.process.wait(ENDS_S)
        press.join(ENDS_S)
        assert not press.is_alive()
    device.kill_hanging_programs()
    before = device.states()
    assert "running" in before
    assert (device.root / "etc/hostname").read_text() == "kitchen\n"
    device.programs["tailscale"].set_behaviour(OK)
    with device.wizard() as wizard:
        assert not key_file.exists()
        visitor = visitor_of(wizard)
        assert visitor.ask("/").location == "/wizard/review"
        # Only this key was not stored on the device yet.
        visitor.answer({"mesh-vpn": FORMS["mesh-vpn"]})
        assert visitor.apply().location == "/wizard/done"
    assert set(device.states()) == {"done", "kept"}
    assert AUTH_KEY not in (tmp_path / "wizard.log").read_text()


def _apply(visitor: Visitor) -> None:
    # There may be no response.
    with contextlib.suppress(OSError, http.client.HTTPException):
        visitor.apply()
