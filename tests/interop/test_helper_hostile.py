"""The root helper with hostile callers: over its real socket, with other users."""

from __future__ import annotations

import array
import contextlib
import itertools
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from platform_common.errors import PlatformError
from platform_common.root_helper.client import ask
from platform_common.storage.file_lock import LockedError
from tests.interop.test_control_helper import NOBODY, SET, STRANGER, Helped, helped, request
from tests.interop.test_setup_helper import CANARIES, SECRETS, Setup, as_nobody, asked, setup
from tests.support.appliances import Appliance
from tests.support.machine import Machine, machine
from tests.support.odd_files import LINKS, NOT_REGULAR, make, picture
from tests.support.own_packages import LIBRARIES, PACKAGES
from tests.support.process_users import as_user
from tests.support.setups import JOURNAL, put_answers
from tests.support.waiting import wait_until
from tests.support.wizard_states import ANSWERS, STATE_FILE
from wizard_app.setup.apply.helper_client import SETUP_APPLY, SetUp
from wizard_app.setup.apply.journal import read_attempt

__all__ = ["helped", "setup"]

COMPLETE = "/etc/platform/setup-complete"
PRECIOUS = "CaNaRy-of-root-0123"
# A stand-in on the helper's PATH that waits until a test lets it continue.
WAITS = """#!/bin/sh
touch {folder}/waits
while [ ! -e {folder}/goes-on ]; do sleep 0.02; done
tr '\\0' '\\n' </proc/$PPID/environ >{folder}/environ
tr '\\0' ' ' </proc/$PPID/cmdline >{folder}/argv
readlink /proc/$PPID/cwd >{folder}/cwd
ls -l /proc/$PPID/fd >{folder}/descriptors
"""


@pytest.fixture
def waiting(setup: Setup) -> Setup:
    """A device whose first command waits until the test lets it continue."""
    (setup.programs / "hostnamectl").write_text(WAITS.format(folder=setup.programs))
    return setup


def ended(setup: Setup) -> bool:
    """Whether all actions are done."""
    last = read_attempt(setup.helped.device.path(JOURNAL))
    return last is not None and last.ended


@pytest.mark.parametrize("operation", ["model-list", "cost", "cost-set", "doctor", "setup-apply"])
def test_another_user_is_refused_even_if_the_mode_of_the_socket_allows_access(
    helped: Helped, operation: str
) -> None:
    assert stat.S_IMODE(helped.socket.stat().st_mode) == 0o666
    before = helped.files()
    with as_user(STRANGER), pytest.raises(PlatformError) as caught:
        ask(helped.socket, operation, {}, object)
    assert caught.value.message == "This user may not use the root helper"
    # The helper logs after its response.
    said = f"refused: request by user {STRANGER}: This user may not"
    wait_until(lambda: said in helped.log.read_text())
    assert helped.files() == before


def test_membership_in_the_users_group_gives_no_access(helped: Helped) -> None:
    os.setegid(NOBODY)
    try:
        with as_user(STRANGER), pytest.raises(PlatformError, match="may not use"):
            ask(helped.socket, "model-list", {}, object)
    finally:
        os.setegid(0)


def test_descriptors_sent_with_a_request_are_closed_and_cause_no_delay(helped: Helped) -> None:
    reading, writing = os.pipe()
    with helped.connected() as connection:
        sent = array.array("i", [writing] * 200)
        connection.sendmsg(
            [request("model-list")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent.tobytes())]
        )
        os.close(writing)
        connection.shutdown(socket.SHUT_WR)
        assert b"gpt-4o" in connection.recv(1 << 20)
    # The other end of the pipe is closed everywhere.
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_a_request_can_arrive_in_pieces_but_not_forever(helped: Helped) -> None:
    with helped.connected() as connection:
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for number in range(100_000):
                connection.sendall(b" " * (1 + 6 * (number % 2)))
                time.sleep(0.05)
                assert time.monotonic() - began < 15, number
    assert "gpt-4o" in helped.send(request("model-list"))


def test_a_caller_that_closes_early_does_not_break_the_helper(helped: Helped) -> None:
    for sent in (b"", b'{"oper', request("model-list"), request("doctor")):
        for _ in range(3):
            with helped.connected() as connection:
                connection.sendall(sent)
    assert "gpt-4o" in helped.send(request("model-list"))


def test_killing_the_caller_does_not_stop_the_operation(waiting: Setup) -> None:
    path, arguments = waiting.helped.socket, json.dumps(asked(waiting))
    script = (
        "import json, os, sys; from pathlib import Path\n"
        "from platform_common.root_helper.client import ask\n"
        "from wizard_app.setup.apply.helper_client import SetUp\n"
        f"os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        f"ask(Path({str(path)!r}), {SETUP_APPLY!r}, json.load(sys.stdin), SetUp,"
        " on_progress=lambda told: print(told['number'], flush=True))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as caller:
        assert caller.stdin is not None
        assert caller.stdout is not None
        caller.stdin.write(arguments)
        caller.stdin.close()
        assert caller.stdout.readline() == "1\n"
        wait_until((waiting.programs / "waits").exists)
        caller.send_signal(signal.SIGKILL)
    (waiting.programs / "goes-on").touch()
    wait_until(lambda: "change: setup-apply" in waiting.helped.log.read_text())
    assert ended(waiting)
    assert waiting.helped.device.path(COMPLETE).exists()


def test_leak_01_a_working_helper_shows_no_secret_and_nothing_of_its_caller(
    waiting: Setup,
) -> None:
    (waiting.programs / "goes-on").touch()
    told: list[Any] = []
    arguments = asked(waiting)
    with as_nobody():
        done = ask(waiting.helped.socket, SETUP_APPLY, arguments, SetUp, on_progress=told.append)
    seen = {
        name: (waiting.programs / name).read_text()
        for name in ("environ", "argv", "cwd", "descriptors")
    }
    said = json.dumps(told) + repr(done) + waiting.helped.log.read_text() + "".join(seen.values())
    assert [canary for canary in CANARIES if canary in said] == []
    assert "control-helper" in seen["argv"]
    # The only open descriptors are the connection and the helper's own files.
    assert str(Path(__file__).parents[2]) not in seen["descriptors"]
    assert [one["state"] for one in told if one["number"] == 1] == ["running", "done"]
    assert told[-1]["number"] == told[-1]["of"] == done.actions


def test_wiz_12_the_second_of_two_concurrent_setups_is_refused(waiting: Setup) -> None:
    arguments, outcomes = asked(waiting), []

    def apply() -> None:
        outcomes.append(ask(waiting.helped.socket, SETUP_APPLY, arguments, SetUp))

    first = threading.Thread(target=apply)
    first.start()
    wait_until((waiting.programs / "waits").exists)
    # Even if the caller removes the locks that it can remove.
    for lock in waiting.helped.device.path(JOURNAL).parent.glob(".*.lock"):
        lock.unlink()
    with pytest.raises(LockedError):
        ask(waiting.helped.socket, SETUP_APPLY, arguments, SetUp)
    (waiting.programs / "goes-on").touch()
    first.join(20)
    assert len(outcomes) == 1


def test_wiz_12_a_configured_device_is_not_set_up_again_and_reports_success(setup: Setup) -> None:
    arguments = asked(setup)
    assert ask(setup.helped.socket, SETUP_APPLY, arguments, SetUp).actions > 10
    path = setup.helped.device.path(COMPLETE)
    assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_uid) == (0o644, 0)
    assert [canary for canary in CANARIES if canary in path.read_text()] == []
    before, commands = setup.files(), setup.commands()
    # As if the response was lost: whatever the state file says, and with or without secrets.
    for step, secrets in (("review", SECRETS), ("done", {})):
        put_answers(setup.helped.device, step=step)
        os.chown(setup.helped.device.path(STATE_FILE), NOBODY, NOBODY)
        again = {**arguments, "secrets": secrets}
        assert ask(setup.helped.socket, SETUP_APPLY, again, SetUp) == SetUp(0)
    put_answers(setup.helped.device)
    assert (setup.files(), setup.commands()) == (before, commands)
    # Other answers, another setup, or a marker created by hand.
    put_answers(setup.helped.device, hostname="mine")
    with pytest.raises(PlatformError, match="is already set up"):
        ask(setup.helped.socket, SETUP_APPLY, arguments, SetUp)
    put_answers(setup.helped.device)
    for made in (path.read_text().replace("2026", "2027", 1), "", "{"):
        path.write_text(made)
        with pytest.raises(PlatformError, match="is already set up") as caught:
            ask(setup.helped.socket, SETUP_APPLY, arguments, SetUp)
        assert "platformctl setup again" in caught.value.hint
    assert setup.commands() == commands


# Paths that the wizard's user can create, in sticky folders that belong to root.
PLACES = (
    *(JOURNAL, "/var/lib/platform/.apply.lock", STATE_FILE),
    *("/run/platform/mesh-vpn.key", "/run/platform/wizard.token.address"),
)


@pytest.fixture
def sticky(setup: Setup) -> Setup:
    """A device whose folders have the owners and modes of a real machine."""
    for folder in ("/var/lib/platform", "/run/platform"):
        path = setup.helped.device.path(f"{folder}/x").parent
        os.chown(path, 0, NOBODY)
        path.chmod(0o1770)
    return setup


@pytest.mark.parametrize(
    "place", [JOURNAL, *(pytest.param(one, marks=pytest.mark.long) for one in PLACES[1:])]
)
@pytest.mark.parametrize("kind", [*NOT_REGULAR, *LINKS])
def test_fs_07_special_files_and_links_are_neither_read_nor_written_through(
    sticky: Setup, place: str, kind: str
) -> None:
    arguments = asked(sticky)
    path = sticky.helped.device.path(place)
    path.unlink(missing_ok=True)
    make(kind, path)
    precious = path.with_name("precious")
    before = picture(path.parent).get("precious")
    with contextlib.suppress(PlatformError):
        ask(sticky.helped.socket, SETUP_APPLY, arguments, SetUp)
    after = picture(path.parent).get("precious")
    # A second hard link to it may have been removed.
    assert (before and (before[:2], before[3:])) == (after and (after[:2], after[3:]))
    if precious.exists():
        assert precious.read_bytes() == b"precious\n"


SWAPS = """
import os, sys, time
user, precious, *places = sys.argv[1:]
os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
kept = {place: open(place, "rb").read() if os.path.exists(place) else b"{}" for place in places}

def attempt(do, *args):
    try:
        do(*args)
    except OSError:
        pass

def put(place):
    with open(place, "xb") as file:
        file.write(kept[place])

print("swapping", flush=True)
turn = 0
while True:
    turn += 1
    for place in places:
        attempt(os.unlink, place)
        attempt(os.rmdir, place)
        attempt(os.rename, place, place + ".mine")
        kind = (turn + len(place)) % 5
        if kind == 0:
            attempt(os.symlink, precious, place)
        elif kind == 1:
            attempt(os.link, precious, place)
        elif kind == 2:
            attempt(os.mkfifo, place)
        elif kind == 3:
            attempt(os.symlink, precious, place + ".new")
            attempt(os.rename, place + ".new", place)
        else:
            attempt(put, place)
    # Root's temporary files.
    for folder in {os.path.dirname(place) for place in places}:
        for name in os.listdir(folder):
            if name.endswith(".tmp"):
                attempt(os.unlink, os.path.join(folder, name))
                attempt(os.symlink, precious, os.path.join(folder, name))
"""


@pytest.mark.parametrize(
    ("of_answers", "least", "most"),
    [
        (False, 1, 40),
        pytest.param(False, 8, 40, marks=pytest.mark.long),
        # Few of these attempts get as far as running a command.
        pytest.param(True, 8, 8, marks=pytest.mark.long),
    ],
)
def test_fs_07_swapping_files_during_setup_does_not_lead_root_elsewhere(
    sticky: Setup, of_answers: bool, least: int, most: int
) -> None:
    device = sticky.helped.device
    precious = device.put("/precious", PRECIOUS, mode=0o600)
    before = picture(precious.parent)["precious"]
    arguments, said = asked(sticky), ""
    places = [str(device.path(place)) for place in PLACES if (place == STATE_FILE) is of_answers]
    with subprocess.Popen(
        [sys.executable, "-c", SWAPS, str(NOBODY), str(precious), *places],
        stdout=subprocess.PIPE,
        text=True,
    ) as swapper:
        try:
            assert swapper.stdout is not None
            assert swapper.stdout.readline() == "swapping\n"
            for tried in range(1, most + 1):
                # So that each attempt runs completely.
                device.path(COMPLETE).unlink(missing_ok=True)
                with contextlib.suppress(PlatformError):
                    said += repr(ask(sticky.helped.socket, SETUP_APPLY, arguments, SetUp))
                if tried >= least and sticky.commands():
                    break
        except PlatformError as error:
            said += error.message
        finally:
            swapper.kill()
    assert picture(precious.parent)["precious"] == before
    assert of_answers or sticky.commands()
    key = sticky.programs / "key"
    said += sticky.helped.log.read_text() + (key.read_text() if key.exists() else "")
    assert PRECIOUS not in said
    for place in places:
        with contextlib.suppress(FileNotFoundError):
            Path(place).unlink()
    # Once the attacker is gone, the device can be set up.
    device.path(COMPLETE).unlink(missing_ok=True)
    put_answers(device)
    assert ask(sticky.helped.socket, SETUP_APPLY, arguments, SetUp).actions > 10
    assert ended(sticky)


FLOOD = """
import contextlib, socket, sys
held = [socket.socket(socket.AF_UNIX) for _ in range(int(sys.argv[1]))]
for connection in held:
    connection.settimeout(30)
    connection.connect("/run/platform/control.sock")
answers = 0
for connection in held:
    with contextlib.suppress(OSError):
        connection.sendall(b'{"operation": "model-list", "arguments": {}}\\n')
        connection.shutdown(socket.SHUT_WR)
        answers += connection.recv(1 << 20) != b""
print(answers)
"""
AS_WEB = ("runuser", "-u", "platform", "--")
LEDGER = '{"timestamp": "2026-11-20T10:00:00Z", "provider": "openai", "model": "m", "cost_usd": 9}'


@pytest.fixture
def real(shared: Appliance) -> Iterator[Machine]:
    run = shared.machine.run
    # No wizard is needed, so its memory is freed.
    run("systemctl", "stop", "platform-wizard.socket", "platform-wizard.service")
    yield shared.machine
    records = ("/etc/platform/active-profile", "/etc/platform/cost.toml")
    run("rm", "-rf", *records, "/home/agent/.openclaw")
    run("systemctl", "start", "platform-wizard.socket", "platform-wizard.service")


def test_on_a_real_machine_the_dashboards_user_sees_what_only_agent_and_root_can_read(
    real: Machine,
) -> None:
    real.write("/etc/platform/active-profile", "openclaw\n")
    real.write("/home/agent/.openclaw/cost-ledger.jsonl", f"{LEDGER}\n", mode="0640")
    real.run("chown", "--recursive", "agent:agent", "/home/agent/.openclaw")
    closed = real.call(*AS_WEB, "cat", "/home/agent/.openclaw/cost-ledger.jsonl")
    assert "Permission denied" in closed.stderr
    for words in (("cost",), ("cost", "ledger"), ("doctor",)):
        there, here = (
            json.loads(real.call(*who, "platformctl", *words, "--json").stdout)
            for who in (AS_WEB, ())
        )
        for checks in (there.get("checks", []), here.get("checks", [])):
            # The details of a problem may change from one moment to the next.
            for check in checks:
                check["outcome"] = check["outcome"]["kind"]
        assert there == here
    assert "openclaw" in real.run("runuser", "-u", "agent", "--", "platformctl", "status")
    told = real.run(*AS_WEB, "platformctl", "cost", "set", "--daily", "1")
    assert "$1.00" in told
    # The helper logs after its response.
    lines = ("read: doctor by user", "change: cost-set by user")
    wait_until(lambda: all(line in real.log("--unit=platform-control@*") for line in lines))


def test_on_a_real_machine_another_user_is_refused_even_with_access_to_the_socket(
    real: Machine,
) -> None:
    words = ((*SET, "openai"), ("cost", "set", "--daily=9"))
    # First the folder and the socket deny access, then both allow it.
    for opened in (False, True):
        if opened:
            real.run("chmod", "0777", "/run/platform", "/run/platform/control.sock")
        for user, command in itertools.product(("agent", "nobody"), words):
            done = real.call("runuser", "-u", user, "--", "platformctl", *command, stdin="k")
            assert (done.returncode, done.stdout) == (1, "")
            assert ("may not use the root helper" if opened else "Permission") in done.stderr
    real.run("chmod", "1770", "/run/platform")
    real.run("chmod", "0660", "/run/platform/control.sock")


def test_on_a_real_machine_a_hundred_simultaneous_callers_do_not_end_the_helper(
    real: Machine,
) -> None:
    answered = int(real.run(*AS_WEB, "python3", "-c", FLOOD, "100"))
    assert 1 <= answered <= 100
    assert real.run("systemctl", "is-active", "platform-control.socket") == "active\n"
    assert "openrouter" in real.run(*AS_WEB, "platformctl", "model", "list")


# With the libraries of the environment that runs the tests.
WIZARD = f"""
import json, sys
sys.path += [{PACKAGES!r}, {LIBRARIES!r}]
from wizard_app.app import create_app
from wizard_app.setup.settings import WizardSettings
token = "0" * 64
app = create_app(WizardSettings.from_env(dict(WIZARD_PRODUCTION="1", WIZARD_TOKEN=token)))
client = app.test_client()
client.get("/wizard/system?token=" + token, base_url="https://localhost")
for slug, fields in json.load(sys.stdin).items():
    taken = client.post("/wizard/" + slug, data=fields, base_url="https://localhost")
    assert taken.status_code == 302, (slug, taken.text)
done = client.post("/wizard/review/apply", base_url="https://localhost")
print(done.status_code, done.location or done.text)
"""


@pytest.mark.long
def test_on_a_real_machine_only_root_can_reopen_a_completed_setup() -> None:
    # A separate machine, because the test changes it for good.
    with machine() as real:
        real.run("platformctl", "services", "install", "--programs", "/usr/local/bin")
        real.run("systemctl", "stop", "platform-wizard.socket", "platform-wizard.service")
        assert_only_root_reopens_setup(real)


def assert_only_root_reopens_setup(real: Machine) -> None:
    """Set up the machine from the command line, and again after root reopened setup."""
    by_wizard = (*AS_WEB, "python3", "-c", WIZARD)
    skipped = {"mesh-vpn": {"skip": "1"}, "tunnel": {"choice": "skip"}}
    forms = json.dumps({**ANSWERS, **skipped})
    # The last action fails, and the wizard ends with its secrets.
    real.unit("openclaw-gateway.service", "Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/false")
    assert real.run(*by_wizard, stdin=forms).startswith("200 ")
    assert real.call("test", "-e", COMPLETE).returncode == 1
    real.unit("openclaw-gateway.service", "Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true")
    done = real.run(*AS_WEB, "platformctl", "setup", "apply", "--yes")
    assert "✓ done" in done
    assert "openclaw-gateway.service" in done
    assert done.endswith("This device is set up.\n")
    assert real.rights(COMPLETE) == "644 root:root"
    assert state_of(real)["step"] == "done"
    # A power cut before the state file was written: everything else reports the real state.
    at_review = {**state_of(real), "step": "review", "completed_at": None}
    real.run("tee", STATE_FILE, stdin=json.dumps(at_review))
    as_json = real.run(*AS_WEB, "platformctl", "setup", "status", "--json")
    assert json.loads(as_json)["complete"]
    assert json.loads(real.run("platformctl", "setup", "plan", "--json"))["step"] == "done"
    journal = real.run("cat", JOURNAL)
    assert real.run(*by_wizard, stdin="{}") == "302 /wizard/done\n"
    assert real.run("cat", JOURNAL) == journal
    # The wizard's own user cannot reopen setup.
    refused = real.call(*AS_WEB, "platformctl", "setup", "again", "--yes")
    assert (refused.returncode, state_of(real)["step"]) == (1, "done")
    assert "Permission denied" in refused.stderr
    assert "restart platform-wizard.service" in real.run("platformctl", "setup", "again", "--yes")
    assert state_of(real) == at_review
    assert real.rights(STATE_FILE).startswith("600 platform:")
    assert not json.loads(real.run("platformctl", "setup", "status", "--json"))["complete"]
    twice = real.call("platformctl", "setup", "again", "--yes")
    assert "is not set up yet" in twice.stderr
    assert "This device is set up." in real.run("platformctl", "setup", "apply", "--yes")
    assert real.rights(STATE_FILE).startswith("600 platform:")


def state_of(real: Machine) -> dict[str, Any]:
    """The content of the wizard's state file."""
    found: dict[str, Any] = json.loads(real.run("cat", STATE_FILE))
    return found
