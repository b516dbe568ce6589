"""A served wizard that is told to end while it sets up: soon over, and nothing half done."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.support import stand_in_programs
from tests.support.apply_setups import (
    FULL,
    JOURNAL,
    KEY_FILE,
    RULES,
    Tree,
    answer,
    left_overs,
    press_once_more,
    result,
    started,
)
from tests.support.waiting import wait_until
from tests.support.web_servers import Served, served, unverified
from tests.support.wizard_visits import Visitor, visitor_of

_ENDS_S = 20.0
_TOKEN = "0123456789abcdef" * 4


def _answer(visitor: Visitor) -> None:
    for slug, form in FULL.items():
        fields = [
            (name, one)
            for name, value in form.items()
            for one in ([value] if isinstance(value, str) else value)
        ]
        assert visitor.ask(f"/wizard/{slug}", fields).status == 302


def _press(visitor: Visitor) -> threading.Thread:
    """Press the button, whether or not there is an answer."""

    def press() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            visitor.apply()

    thread = threading.Thread(target=press)
    thread.start()
    return thread


def _end(wizard: Served, number: signal.Signals) -> float:
    """Tell it to end; how long that takes, in seconds."""
    begun = time.monotonic()
    wizard.process.send_signal(number)
    wizard.process.wait(_ENDS_S)
    return time.monotonic() - begun


@pytest.fixture
def after(tmp_path: Path) -> Tree:
    """What a device is in the end."""
    out = tmp_path / "undisturbed"
    client = started(out)
    answer(client, FULL)
    client.post("/wizard/review/apply")
    return result(out)


def _but_for_its_address(tree: Tree) -> Tree:
    """Without what depends on where the wizard was served."""
    return {name: found for name, found in tree.items() if "wizard" not in name and name != RULES}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_fs_10_and_11_a_wizard_that_is_told_to_end_at_random_leaves_nothing_half_done(
    tmp_path: Path, after: Tree, number: signal.Signals
) -> None:
    chance = random.Random(number)
    for count in range(4):
        out = tmp_path / str(count)
        environment = {
            "PLATFORM_ROOT": f"{out}/none",
            "WIZARD_DEV_OUT": str(out),
            "WIZARD_NO_TOKEN": "1",
        }
        with served("wizard-app", environment, tmp_path / "log") as wizard:
            visitor = visitor_of(wizard)
            _answer(visitor)
            pressed = _press(visitor)
            wait_until((out / JOURNAL).exists)
            time.sleep(chance.uniform(0, 0.1))
            assert _end(wizard, number) < _ENDS_S
            pressed.join(_ENDS_S)
        press_once_more(out, FULL)
        assert _but_for_its_address(result(out)) == _but_for_its_address(after)
        assert left_overs(out) == []


def test_fs_10_a_program_that_hangs_keeps_no_wizard_from_ending(tmp_path: Path) -> None:
    programs, root = tmp_path / "bin", tmp_path / "device"
    for name in ("hostnamectl", "timedatectl", "systemctl", "nft"):
        stand_in_programs.install(programs, name)
    tailscale = stand_in_programs.install(programs, "tailscale")
    tailscale.does(stand_in_programs.HANG)
    root.mkdir()
    environment = {
        "WIZARD_PRODUCTION": "1",
        "WIZARD_TOKEN": _TOKEN,
        "PLATFORM_ROOT": str(root),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    with served("wizard-app", environment, tmp_path / "log", "--production", scheme="https") as app:
        visitor = Visitor(
            lambda: http.client.HTTPSConnection(
                "127.0.0.1", app.port, timeout=60, context=unverified()
            )
        )
        assert visitor.ask(f"/?token={_TOKEN}").status in (200, 302, 303)
        _answer(visitor)
        pressed = _press(visitor)
        wait_until((root / KEY_FILE).exists)
        assert _end(app, signal.SIGTERM) < _ENDS_S
        pressed.join(_ENDS_S)
    # On a device systemd ends it with the wizard.
    [call] = tailscale.calls()
    os.killpg(call["pid"], signal.SIGKILL)
    # Whoever starts next finds no key of another's.
    with served("wizard-app", environment, tmp_path / "log", "--production", scheme="https"):
        assert not (root / KEY_FILE).exists()
        assert left_overs(root) == []
