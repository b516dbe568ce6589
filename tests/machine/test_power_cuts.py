"""The power is cut during setup: after the next boot one more press completes it."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.appliances import Appliance, appliance
from tests.support.device_files import Files, device_files
from tests.support.first_boot import CANARIES, GATEWAY, SECRET_STEPS, Device, forms
from tests.support.machine import writable_tree
from tests.support.waiting import wait_until
from tests.support.wizard_visits import Visitor

pytestmark = pytest.mark.long

_CUTS = 20
_COMPLETE = "/etc/platform/setup-complete"
_JOURNAL = "var/lib/platform/apply-journal.jsonl"
# The journal has one line for all actions at first, then two for each: at its begin and its end.
_LINES = 36
_LONGEST_S = 0.04
_TIMEOUT_S = 60


class Answered(NamedTuple):
    """The files of a device with all answers, and of the same device after an undisturbed setup."""

    tree: Path
    undisturbed: Files


@pytest.fixture(scope="module")
def answered(device_tree: Path) -> Iterator[Answered]:
    with writable_tree(device_tree) as tree:
        with appliance(tree, programs=False, clean=True) as here:
            here.device.visitor().answer(forms(tree))
        with writable_tree(tree) as other:
            with appliance(other, programs=False, clean=True) as here:
                _finish(here.device, here.device.visitor(), other)
                wait_until(lambda: _is_up(here.device))
            yield Answered(tree, device_files(other))


def _finish(device: Device, visitor: Visitor, tree: Path) -> None:
    """Enter the requested secrets again, and apply."""
    asked = device.secrets_asked()
    assert set(asked) <= set(SECRET_STEPS)
    if asked:
        assert visitor.apply().status == 200
    visitor.answer({slug: fields for slug, fields in forms(tree).items() if slug in asked})
    done = visitor.apply()
    assert (done.status, done.location) == (302, "/wizard/done"), done.body


def _is_up(device: Device) -> bool:
    return device.run("systemctl", "show", "--property=ActiveState", "--value", GATEWAY) == (
        "active\n"
    )


def _cut(here: Appliance, tree: Path, lines: int, then_s: float) -> None:
    """Apply, and cut the power `then_s` seconds after the journal has `lines` lines."""
    visitor = here.device.visitor()
    every = {slug: fields for slug, fields in forms(tree).items() if slug in SECRET_STEPS}
    visitor.answer(every)

    def press() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            visitor.apply()

    pressing = threading.Thread(target=press)
    pressing.start()
    _wait_for_lines(here.root / _JOURNAL, lines)
    time.sleep(then_s)
    os.kill(here.machine.init, signal.SIGKILL)
    pressing.join(_TIMEOUT_S)
    assert not pressing.is_alive()


def _wait_for_lines(journal: Path, lines: int) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if journal.read_bytes().count(b"\n") >= lines:
                return
    raise AssertionError(f"the journal never has {lines} lines")


@pytest.mark.parametrize("number", range(_CUTS))
def test_wiz_09_after_a_power_cut_during_setup_one_press_completes_it(
    answered: Answered, number: int
) -> None:
    lines = number * _LINES // (_CUTS - 1)
    then_s = random.Random(number).uniform(0, _LONGEST_S)
    with writable_tree(answered.tree) as tree:
        with appliance(tree, programs=False) as here:
            _cut(here, tree, lines, then_s)
        complete = (tree / _COMPLETE.lstrip("/")).exists()
        with appliance(tree, programs=False, clean=True) as here:
            device = here.device
            if not complete:
                _finish(device, device.visitor(), tree)
            wait_until(lambda: _is_up(device))
            assert device.run("systemctl", "--failed", "--quiet", "--plain") == ""
            for seen in device.seen_by_gateway():
                assert seen["environ"]["OPENROUTER_API_KEY"] == CANARIES["provider"]
                assert seen["firewall"]
                assert len(seen["records"]) == 2
        assert device_files(tree) == answered.undisturbed
