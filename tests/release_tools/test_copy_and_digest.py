"""How an artefact enters a release: linked or copied, read once, and unchanged meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from platform_common.errors import AccessError
from release_tools.copy_and_digest import ChangedError, copy_and_digest, digest_file
from release_tools.hashing import BUFFER_BYTES
from tests.support.faults import FaultServer
from tests.support.releases import VERSION, pseudo_random, write_artefacts
from tests.support.trees import tree
from tests.support.waiting import wait_until

_ARGS = ("build", "artefacts", "--version", VERSION, "--channel", "stable")
_NAME = f"platform-khoj-rpi5-{VERSION}-stable.img.xz"
_DATA = pseudo_random(3 * BUFFER_BYTES + 17, "image")


# A build calls ioctl(2) for the reflink, and to find out whether it writes to a terminal.
_NO_REFLINK = "ioctl:error=EOPNOTSUPP"


def test_an_artefact_on_the_same_file_system_is_linked(tmp_path: Path, server: FaultServer) -> None:
    source = write_artefacts(tmp_path / "artefacts", {_NAME: _DATA}) / _NAME
    source.chmod(0o644)
    built = server.run(*_ARGS, cwd=tmp_path, env={}, fault=_NO_REFLINK)
    assert built.returncode == 0, built.stderr
    assert source.samefile(tmp_path / "dist/stable" / VERSION / _NAME)


@pytest.mark.parametrize("error", ["EXDEV", "EPERM", "EMLINK", "EOPNOTSUPP"])
def test_an_artefact_that_cannot_be_linked_is_copied_and_read_once(
    tmp_path: Path, server: FaultServer, error: str
) -> None:
    source = write_artefacts(tmp_path / "artefacts", {_NAME: _DATA}) / _NAME
    faults = f"{_NO_REFLINK} linkat:error={error}"
    built = server.run(*_ARGS, cwd=tmp_path, env={}, fault=faults, also_trace="readv")
    assert built.returncode == 0, built.stderr
    copy = tmp_path / "dist/stable" / VERSION / _NAME
    assert not source.samefile(copy)
    assert copy.read_bytes() == _DATA
    assert copy.stat().st_mode & 0o777 == 0o644
    reads = [line for line in built.calls if "readv(" in line]
    assert sum(int(line.rpartition("= ")[2]) for line in reads) == len(_DATA)
    assert all(f"/artefacts/{_NAME}>" in line for line in reads)


def test_an_artefact_on_another_file_system_is_copied(tmp_path: Path) -> None:
    # A file in memory, so that the test needs no other file system.
    with open(os.memfd_create("source"), "r+b", buffering=0) as file:
        file.write(_DATA)
        source = Path(f"/proc/self/fd/{file.fileno()}")
        digests = copy_and_digest(
            source, tmp_path / "copy", paired=False, on_chunk=lambda chunk: None
        )
        assert (tmp_path / "copy").read_bytes() == _DATA
        assert digests == digest_file(source)
    with pytest.raises(AccessError, match="none: No such file"):
        digest_file(tmp_path / "none")


def test_an_artefact_that_others_cannot_read_is_copied_and_made_readable(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(_DATA)
    source.chmod(0o600)
    copy_and_digest(source, tmp_path / "placed", paired=False, on_chunk=lambda chunk: None)
    assert (tmp_path / "placed").stat().st_mode & 0o777 == 0o644
    assert source.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o644, 0o600], ids=["linked", "copied"])
@pytest.mark.parametrize("how", ["ab", "r+b"], ids=["grows", "written over"])
def test_a_file_that_changes_while_it_is_hashed_is_refused(
    tmp_path: Path, mode: int, how: str
) -> None:
    source = tmp_path / "source"
    source.write_bytes(_DATA)
    source.chmod(mode)

    def change(chunk: memoryview) -> None:
        with source.open(how) as file:
            file.write(b"other")

    with pytest.raises(ChangedError, match="changed while it was read"):
        copy_and_digest(source, tmp_path / "placed", paired=False, on_chunk=change)


def test_a_build_publishes_nothing_if_a_file_changes_meanwhile(
    tmp_path: Path, server: FaultServer
) -> None:
    source = write_artefacts(tmp_path / "artefacts", {_NAME: _DATA}) / _NAME
    # The first read is slow, and the file changes until it has ended.
    slow = "readv:delay_exit=400000:when=1"
    run = server.start(*_ARGS, cwd=tmp_path, env={}, fault=slow)
    wait_until(lambda: list(tmp_path.glob("dist/stable/.*/platform-*")))
    [unfinished] = tmp_path.glob("dist/stable/.*")
    while unfinished.exists():
        with source.open("ab") as file:
            file.write(b"more")
    ended = run.wait()
    assert ended.returncode == 1
    assert "changed while it was read" in ended.stderr
    assert "hint: Try again when nothing writes to it." in ended.stderr
    assert not (tmp_path / "dist").exists()
    assert list(tree(tmp_path / "artefacts")) == [_NAME]
