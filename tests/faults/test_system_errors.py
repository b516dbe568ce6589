"""A system call that fails during a build or a signing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.faults import FaultServer, Run, Site, until_missed
from tests.support.releases import VERSION
from tests.support.trees import hidden, tree

_FAULTS = [
    *(f"{call}:error=EIO" for call in ("openat", "linkat", "write", "fsync", "renameat", "flock")),
    *(f"{call}:error=ENOSPC" for call in ("mkdir", "linkat", "write", "fsync")),
    *(f"{call}:error=EROFS" for call in ("mkdir", "rename", "renameat", "unlink")),
    *(f"{call}:error=EACCES" for call in ("openat", "renameat")),
    "openat:error=EMFILE",
    "write:error=EDQUOT",
    "readv:error=EIO",
]


def failures(
    site: Site, run: Callable[[int], Run], *, may_leave_files: bool = False
) -> Iterator[Run]:
    """Every run that failed, each told in one sentence and with a whole release, old or new."""
    seen = 0
    for _, ended in until_missed(run):
        if ended.returncode == 0:
            # The call was not needed after all, such as one for a folder that is there already.
            assert site.state() == "new"
            continue
        seen += 1
        _assert_one_sentence(ended)
        assert site.state() in ("old", "new")
        assert may_leave_files or hidden(site.dist) == []
        yield ended
    assert seen


def _assert_one_sentence(run: Run) -> None:
    lines = run.stderr.splitlines()
    assert run.stderr.startswith("error: ")
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: "))
    assert run.returncode == 5, run.stderr


@pytest.mark.parametrize("fault", _FAULTS)
def test_fs_03_a_system_call_that_fails_in_a_build_is_told_and_the_old_release_stays(
    site: Site, server: FaultServer, fault: str
) -> None:
    def run(count: int) -> Run:
        site.reset()
        args = site.build_args()
        one = f"{fault}:when={count}"
        return server.run(*args, cwd=site.folder, env=site.env, fault=one)

    old_artefacts = tree(site.folder / "before" / "stable" / VERSION)
    for _ in failures(site, run, may_leave_files=fault.startswith("unlink")):
        assert tree(site.dist / "stable" / VERSION) == old_artefacts


@pytest.mark.parametrize(
    "fault",
    ["openat:error=EIO", "write:error=ENOSPC", "fsync:error=EIO", "renameat:error=EIO"],
)
def test_fs_03_a_system_call_that_fails_in_signing_is_told_and_the_old_release_stays(
    site: Site, server: FaultServer, fault: str
) -> None:
    def run(count: int) -> Run:
        site.reset(unsigned=True)
        args = ("sign", "dist/stable/manifest.json.unsigned")
        one = f"{fault}:when={count}"
        return server.run(*args, cwd=site.folder, env=site.env, fault=one)

    for _ in failures(site, run):
        pass


def test_fs_03_every_rename_that_fails_leaves_the_old_release(
    site: Site, server: FaultServer
) -> None:
    def run(count: int) -> Run:
        site.reset()
        fault = f"renameat:error=EIO:when={count}"
        return server.run(*site.build_args(), cwd=site.folder, env=site.env, fault=fault)

    assert {site.state() for _ in until_missed(run)} == {"old"}


def test_fs_03_a_disk_that_fails_from_some_write_on_leaves_a_release_that_verifies_or_none(
    site: Site, server: FaultServer
) -> None:
    for count in range(1, 6):
        site.reset()
        # From the n-th on all of them fail: the one that tells of it, too.
        fault = f"fsync,renameat:error=EIO:when={count}+"
        run = server.run(*site.build_args(), cwd=site.folder, env=site.env, fault=fault)
        assert run.returncode == 5
        assert site.state() == "old"
        assert hidden(site.dist) == []


def test_fs_01_a_short_write_loses_no_byte(site: Site, server: FaultServer) -> None:
    # The first write of every thread takes nothing and says so with an interruption.
    site.reset()
    fault = "write:error=EINTR:when=1..3"
    run = server.run(*site.build_args(), cwd=site.folder, env=site.env, fault=fault)
    assert run.returncode == 0, run.stderr
    assert site.state() == "new"
