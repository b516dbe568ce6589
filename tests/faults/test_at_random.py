"""Programs that are killed or stopped at random moments."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.programs import TIME_ZONE
from tests.faults.subjects import SubjectOf
from tests.faults.walks import NEW, OLD, TORN
from tests.support import stand_in_programs
from tests.support.apply_setups import (
    FULL,
    JOURNAL,
    KEY_FILE,
    RULES,
    Tree,
    answer,
    environment,
    left_overs,
    press_once_more,
    result,
    started,
)
from tests.support.faults import FaultServer, Site
from tests.support.releases import KeyPair, clean_environment, program, write_artefacts
from tests.support.running import run
from tests.support.trees import tree
from tests.support.waiting import wait_until
from tests.support.web_servers import Served, served, unverified
from tests.support.wizard_visits import Visitor, visitor_of

_TOKEN = "0123456789abcdef" * 4
_ENDS_S = 60.0


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_pub_04_and_fs_11_a_build_ended_at_a_random_moment_leaves_the_old_or_the_new_release(
    subject_of: SubjectOf, server: FaultServer, site: Site, number: signal.Signals
) -> None:
    subject = subject_of("publish: build")
    chance = random.Random(number)
    for _ in range(25):
        subject.reset()
        build = server.start(*site.build_args(), cwd=site.folder, env=site.env)
        _wait_until_at_work(build.pid, site.dist)
        time.sleep(chance.uniform(0, 0.02))
        build.kill(number)
        ended, found = build.wait(), subject.found()
        if number == signal.SIGKILL:
            assert found in (OLD, TORN, NEW)
            continue
        # After the last change, the process may end normally or by the signal.
        assert found == NEW or (found, ended.returncode) == (OLD, 128 + number)
        assert found == NEW or "Traceback" not in ended.stderr
        assert subject.left_overs() == []
    subject.again(subject.found())


def _wait_until_at_work(pid: int, folder: Path) -> None:
    """Wait until the process has opened `folder`, which it does to lock it, or has ended."""

    def at_work() -> bool:
        try:
            opened = list(Path(f"/proc/{pid}/fd").iterdir())
            return not opened or any(path.readlink() == folder for path in opened)
        except OSError:
            # It has ended, or closed a file during the loop.
            return not Path(f"/proc/{pid}/fd").exists()

    wait_until(at_work)


@pytest.mark.long
def test_wiz_04_a_served_wizard_killed_at_random_moments_loses_nothing_it_acknowledged(
    tmp_path: Path,
) -> None:
    chance = random.Random(20261101)
    acknowledged = 0

    def name_it(visitor: Visitor) -> None:
        nonlocal acknowledged
        form = [("hostname", f"name-{acknowledged + 1}"), ("timezone", TIME_ZONE)]
        assert visitor.ask("/wizard/system", form).status == 302
        acknowledged += 1

    for _ in range(6):
        with served("wizard-app", environment(tmp_path / "out"), tmp_path / "log") as wizard:
            visitor = visitor_of(wizard)
            if acknowledged:
                page = visitor.ask("/wizard/system").body
                shown = re.search(r'value="name-(\d+)"', page)
                # The last name may have been saved although its response was lost.
                assert shown is not None
                assert int(shown[1]) in (acknowledged, acknowledged + 1)
                acknowledged = int(shown[1])
            name_it(visitor)
            wait_s = chance.uniform(0.05, 0.6)
            killer = threading.Timer(wait_s, os.killpg, (wizard.process.pid, signal.SIGKILL))
            killer.start()
            # The response to the last request may be cut off anywhere.
            with contextlib.suppress(OSError, http.client.HTTPException):
                while True:
                    name_it(visitor)
            killer.join()
            wizard.process.wait(20)


@contextlib.contextmanager
def _applying(visitor: Visitor) -> Iterator[None]:
    """Apply in a thread, whether or not there is a response."""

    def press() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            visitor.apply()

    thread = threading.Thread(target=press)
    thread.start()
    yield
    thread.join(_ENDS_S)


def _end(wizard: Served, number: signal.Signals) -> None:
    """Send the signal, and wait for the process to end."""
    wizard.process.send_signal(number)
    wizard.process.wait(_ENDS_S)


def _without_address(out: Path) -> Tree:
    """The result on a device, without the parts that depend on the wizard's address."""
    return {
        name: found for name, found in result(out).items() if "wizard" not in name and name != RULES
    }


@pytest.mark.parametrize(
    ("number", "rounds"),
    [
        pytest.param(signal.SIGTERM, 1, id="TERM once"),
        pytest.param(signal.SIGTERM, 3, id="TERM", marks=pytest.mark.long),
        pytest.param(signal.SIGINT, 4, id="INT", marks=pytest.mark.long),
    ],
)
def test_fs_10_and_11_a_wizard_ended_at_a_random_moment_leaves_nothing_half_done(
    tmp_path: Path, number: signal.Signals, rounds: int
) -> None:
    client = started(tmp_path / "undisturbed")
    answer(client, FULL)
    client.post("/wizard/review/apply")
    chance = random.Random(number + rounds)
    for count in range(rounds):
        out = tmp_path / str(count)
        with served("wizard-app", environment(out), tmp_path / "log") as wizard:
            visitor = visitor_of(wizard)
            visitor.answer(FULL)
            with _applying(visitor):
                wait_until((out / JOURNAL).exists)
                time.sleep(chance.uniform(0, 0.1))
                _end(wizard, number)
        press_once_more(out, FULL)
        assert _without_address(out) == _without_address(tmp_path / "undisturbed")
        assert left_overs(out) == []


@pytest.mark.long
def test_fs_10_a_hanging_program_does_not_stop_the_wizard_from_ending(tmp_path: Path) -> None:
    programs, root = tmp_path / "bin", tmp_path / "device"
    for name in ("hostnamectl", "timedatectl", "systemctl", "nft"):
        stand_in_programs.install(programs, name)
    tailscale = stand_in_programs.install(programs, "tailscale")
    tailscale.set_behaviour(stand_in_programs.HANG)
    root.mkdir()
    variables = {
        "WIZARD_PRODUCTION": "1",
        "WIZARD_TOKEN": _TOKEN,
        "PLATFORM_ROOT": str(root),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    with served("wizard-app", variables, tmp_path / "log", "--production", scheme="https") as app:
        visitor = Visitor(
            lambda: http.client.HTTPSConnection(
                "127.0.0.1", app.port, timeout=60, context=unverified()
            )
        )
        assert visitor.ask(f"/?token={_TOKEN}").status in (200, 302, 303)
        visitor.answer(FULL)
        with _applying(visitor):
            wait_until((root / KEY_FILE).exists)
            _end(app, signal.SIGTERM)
    # On a device systemd ends it with the wizard.
    [call] = tailscale.calls()
    os.killpg(call["pid"], signal.SIGKILL)
    # The next wizard does not find a key of the previous one.
    with served("wizard-app", variables, tmp_path / "log", "--production", scheme="https"):
        assert not (root / KEY_FILE).exists()
        assert left_overs(root) == []


def test_ctrl_c_while_several_files_are_copied_leaves_nothing_behind(
    tmp_path: Path, key_pair: KeyPair
) -> None:
    folder = write_artefacts(tmp_path / "artefacts", {})
    for target in ("rpi4", "rpi5", "arm64-generic", "x86_64-mini-pc"):
        path = folder / f"platform-khoj-{target}-2026.11.1-stable.img.xz"
        path.touch(0o600)
        # Not readable for everyone, so it is copied; a hole takes no space.
        os.truncate(path, 64 << 20)
    before = tree(folder)
    process = subprocess.Popen(
        [program(), "build", "artefacts", "--version", "2026.11.1", "--channel", "stable"],
        cwd=tmp_path,
        env=clean_environment() | {"SIGNING_SECRET_KEY": str(key_pair.secret)},
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: list(tmp_path.glob("dist/stable/.*/platform-*")))
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr == b"Interrupted; nothing half-done was left behind.\n"
    assert not (tmp_path / "dist").exists()
    assert tree(folder) == before


def test_ctrl_c_at_the_password_prompt_ends_with_130(tmp_path: Path) -> None:
    # A separate terminal, because a prompt needs one.
    code = f"""
import os, pty, sys
pid, terminal = pty.fork()
if not pid:
    os.execv({program()!r}, ["release-tools", "keygen", "--secret-key", "k", "--public-key", "p"])
seen = b""
while b"Password" not in seen:
    seen += os.read(terminal, 1024)
os.write(terminal, b"\\x03")
try:
    while os.read(terminal, 1024):
        pass
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert run(sys.executable, "-c", code, cwd=tmp_path, env=clean_environment()).returncode == 130
    assert tree(tmp_path) == {}
