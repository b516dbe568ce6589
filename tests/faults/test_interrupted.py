"""Ctrl-C during a build or a signing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.faults import FaultServer, Run, Site, until_missed
from tests.support.releases import KeyPair, Tools, clean_environment, program, write_artefacts
from tests.support.trees import hidden, tree
from tests.support.waiting import wait_until

_CALLS = ["mkdir", "openat", "linkat", "write", "fsync", "rename", "renameat", "unlinkat"]


@pytest.mark.parametrize("call", _CALLS)
def test_ctrl_c_at_any_call_of_a_build_leaves_the_old_release_or_the_new_and_nothing_else(
    site: Site, server: FaultServer, call: str
) -> None:
    def run(count: int) -> Run:
        site.reset()
        fault = f"{call}:signal=INT:when={count}"
        return server.run(*site.build_args(), cwd=site.folder, env=site.env, fault=fault)

    states = []
    for _, interrupted in until_missed(run):
        assert interrupted.returncode == 130
        assert interrupted.stderr == "Interrupted; nothing half-done was left behind.\n"
        assert hidden(site.dist) == []
        states.append(site.state())
    assert set(states) <= {"old", "new"}
    assert states[0] == "old"


@pytest.mark.parametrize("call", ["write", "fsync", "renameat"])
def test_ctrl_c_at_any_call_of_signing_a_release_leaves_the_old_release_or_the_new(
    site: Site, server: FaultServer, call: str
) -> None:
    def run(count: int) -> Run:
        site.reset(unsigned=True)
        args = ("sign", "dist/stable/manifest.json.unsigned")
        fault = f"{call}:signal=INT:when={count}"
        return server.run(*args, cwd=site.folder, env=site.env, fault=fault)

    states = []
    for _, interrupted in until_missed(run):
        assert interrupted.returncode == 130
        assert hidden(site.dist) == []
        states.append(site.state())
    assert set(states) <= {"old", "new"}
    assert "old" in states


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_fs_11_a_signal_at_random_moments_of_a_build_leaves_nothing_behind(
    site: Site, server: FaultServer, number: signal.Signals
) -> None:
    chance = random.Random(number)
    for _ in range(25):
        site.reset()
        run = server.start(*site.build_args(), cwd=site.folder, env=site.env)
        _wait_until_at_work(run.pid, site.dist)
        time.sleep(chance.uniform(0, 0.02))
        run.kill(number)
        ended = run.wait()
        assert ended.returncode in (128 + number, 0) or site.state() == "new"
        assert "Traceback" not in ended.stderr or site.state() == "new"
        assert site.state() in ("old", "new")
        assert hidden(site.dist) == []


def test_ctrl_c_while_several_files_are_copied_leaves_nothing_behind(
    tmp_path: Path, key_pair: KeyPair
) -> None:
    folder = write_artefacts(tmp_path / "artefacts", {})
    for target in ("rpi4", "rpi5", "arm64-generic", "x86_64-mini-pc"):
        path = folder / f"platform-khoj-{target}-2026.11.1-stable.img.xz"
        path.touch(0o600)
        # Not readable for all, so it is copied; a hole takes no space.
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
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert stderr == b"Interrupted; nothing half-done was left behind.\n"
    assert not (tmp_path / "dist").exists()
    assert tree(folder) == before


def test_ctrl_c_at_the_password_prompt_ends_with_130(tmp_path: Path, tools: Tools) -> None:
    # A terminal of its own, because a prompt needs one.
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
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 130
    assert tree(tmp_path) == {}


def _wait_until_at_work(pid: int, folder: Path) -> None:
    """Return when the process has opened `folder`, which it does to lock it, or has ended."""
    deadline = time.monotonic() + 10
    descriptors = Path(f"/proc/{pid}/fd")
    while time.monotonic() < deadline:
        try:
            if any(path.readlink() == folder for path in descriptors.iterdir()):
                return
        except OSError:
            # It has ended, or closed a file while we looked.
            if not descriptors.exists() or not list(descriptors.iterdir()):
                return
        time.sleep(0.0005)
