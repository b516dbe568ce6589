"""A build or a signing that is killed: the channel serves the old release or the new one."""

from __future__ import annotations

import random
import shutil
import signal
import time

import pytest

from release_tools.layout import MANIFEST_NAME, SIGNATURE_SUFFIX
from tests.support.faults import FaultServer, Run, Site, until_missed
from tests.support.releases import VERSION
from tests.support.trees import hidden, tree

# The calls that change a file system, and those on whose way something changed.
_CALLS = ["mkdir", "openat", "linkat", "write", "fchmod", "fsync", "rename", "renameat", "unlink"]
# A detached pair has two names, and no call changes two names in one moment.
_BETWEEN_THE_TWO_RENAMES = "E_SIG"


def _switch_points(states: list[str]) -> int:
    """How many of `states` lie between the two renames; the others must verify."""
    torn = states.count(_BETWEEN_THE_TWO_RENAMES)
    assert set(states) <= {"old", "new", _BETWEEN_THE_TWO_RENAMES}
    return torn


def _assert_a_new_run_repairs(site: Site, server: FaultServer, *args: str) -> None:
    again = server.run(*args, cwd=site.folder, env=site.env)
    assert again.returncode == 0, again.stderr
    assert site.state() == "new"
    assert hidden(site.dist) == []


@pytest.mark.parametrize("call", _CALLS)
def test_pub_04_and_leak_06_a_build_killed_at_any_call_leaves_the_old_release_or_the_new(
    site: Site, server: FaultServer, call: str
) -> None:
    def run(count: int) -> Run:
        site.reset()
        fault = f"{call}:signal=KILL:when={count}"
        return server.run(*site.build_args(), cwd=site.folder, env=site.env, fault=fault)

    old_artefacts = tree(site.folder / "before" / "stable" / VERSION)
    states = []
    for _, killed in until_missed(run):
        assert killed.returncode == -signal.SIGKILL
        states.append(site.state())
        assert tree(site.dist / "stable" / VERSION) == old_artefacts
        _assert_a_new_run_repairs(site, server, *site.build_args())
    assert _switch_points(states) == (1 if call == "renameat" else 0)
    assert states[0] == "old"


@pytest.mark.parametrize("call", ["openat", "write", "fsync", "renameat", "unlink"])
def test_pub_04_signing_a_release_killed_at_any_call_leaves_the_old_release_or_the_new(
    site: Site, server: FaultServer, call: str
) -> None:
    def run(count: int) -> Run:
        site.reset(unsigned=True)
        fault = f"{call}:signal=KILL:when={count}"
        return server.run("sign", manifest, cwd=site.folder, env=site.env, fault=fault)

    manifest = "dist/stable/manifest.json.unsigned"
    states = []
    for _, killed in until_missed(run):
        assert killed.returncode == -signal.SIGKILL
        states.append(site.state())
        if (site.folder / manifest).exists():
            _assert_a_new_run_repairs(site, server, "sign", manifest)
        assert site.state() == "new"
    assert _switch_points(states) == (1 if call == "renameat" else 0)


def test_pub_04_a_rebuild_of_the_same_release_that_is_killed_leaves_a_release_that_verifies(
    site: Site, server: FaultServer
) -> None:
    later = site.env | {"SOURCE_DATE_EPOCH": "1793491999"}

    def run(count: int) -> Run:
        site.reset()
        args = site.build_args(VERSION)
        fault = f"renameat:signal=KILL:when={count}"
        return server.run(*args, cwd=site.folder, env=later, fault=fault)

    states = [site.state() for _ in until_missed(run)]
    assert set(states) == {"old", _BETWEEN_THE_TWO_RENAMES}
    assert states.count(_BETWEEN_THE_TWO_RENAMES) == 1


@pytest.mark.parametrize("call", ["renameat", "fsync"])
def test_pub_04_a_first_build_that_is_killed_leaves_nothing_that_looks_like_a_release(
    site: Site, server: FaultServer, call: str
) -> None:
    def run(count: int) -> Run:
        shutil.rmtree(site.dist)
        fault = f"{call}:signal=KILL:when={count}"
        return server.run(*site.build_args(), cwd=site.folder, env=site.env, fault=fault)

    states = []
    for _, _ in until_missed(run):
        states.append((site.dist / "stable" / MANIFEST_NAME).exists())
        assert not states[-1] or site.state() == "new"
        _assert_a_new_run_repairs(site, server, *site.build_args())
    assert False in states


def test_between_the_two_renames_the_new_signature_stands_beside_the_old_manifest(
    site: Site, server: FaultServer
) -> None:
    site.reset()
    args = site.build_args()
    count = sum(1 for _ in until_missed(lambda n: _killed_at_rename(site, server, n)))
    assert _killed_at_rename(site, server, count).returncode == -signal.SIGKILL
    manifest = site.dist / "stable" / MANIFEST_NAME
    signature = manifest.with_name(MANIFEST_NAME + SIGNATURE_SUFFIX)
    before = site.folder / "before" / "stable"
    assert manifest.read_bytes() == (before / manifest.name).read_bytes()
    assert signature.read_bytes() != (before / signature.name).read_bytes()
    _assert_a_new_run_repairs(site, server, *args)


def _killed_at_rename(site: Site, server: FaultServer, count: int) -> Run:
    site.reset()
    fault = f"renameat:signal=KILL:when={count}"
    return server.run(*site.build_args(), cwd=site.folder, env=site.env, fault=fault)


def test_pub_04_a_build_killed_at_random_moments_leaves_the_old_release_or_the_new(
    site: Site, server: FaultServer
) -> None:
    site.reset()
    started = time.monotonic()
    server.run(*site.build_args(), cwd=site.folder, env=site.env)
    duration = time.monotonic() - started
    chance = random.Random(20261101)
    states = []
    for _ in range(50):
        site.reset()
        run = server.start(*site.build_args(), cwd=site.folder, env=site.env)
        time.sleep(chance.uniform(0, duration * 1.2))
        run.kill(signal.SIGKILL)
        run.wait()
        states.append(site.state())
    _assert_a_new_run_repairs(site, server, *site.build_args())
    assert _switch_points(states) <= 2
    assert "old" in states


def test_a_left_over_of_a_killed_build_goes_and_a_stranger_that_only_looks_so_stays(
    site: Site, server: FaultServer
) -> None:
    site.reset()
    channel = site.dist / "stable"
    left_over = channel / ".2026.11.2.4711.0123abcd.tmp"
    left_over.mkdir()
    (left_over / "artefact").write_bytes(b"half")
    (channel / ".manifest.json.4711.0123abcd.tmp").write_bytes(b"half")
    link = channel / ".link.4711.0123abcd.tmp"
    link.symlink_to(site.folder)
    (channel / ".notes.tmp").mkdir()
    built = server.run(*site.build_args(), cwd=site.folder, env=site.env)
    assert built.returncode == 0, built.stderr
    assert {path.name for path in channel.glob(".*")} == {link.name, ".notes.tmp"}
