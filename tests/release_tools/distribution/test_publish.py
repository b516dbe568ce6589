"""Publishing a release: the lock, the left-overs and the order of the renames."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_common.errors import AccessError
from release_tools.copy_and_digest import digest_file
from release_tools.distribution.publish import (
    DistributionError,
    channel_folder,
    distribution_lock,
    publish_staged,
    require_same_artefacts,
    staging_folder,
)
from release_tools.manifest.calver import CalVer
from tests.support.faults import FaultServer, make_site
from tests.support.releases import VERSION, KeyPair, Tools, write_artefacts
from tests.support.trees import hidden, tree
from tests.support.waiting import wait_until

_ARGS = ("build", "artefacts", "--version", VERSION, "--channel", "stable")


def test_of_two_builds_at_once_one_succeeds_and_one_reports_the_other(
    tmp_path: Path, key_pair: KeyPair, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        FaultServer(tmp_path_factory.mktemp("one")) as one,
        FaultServer(tmp_path_factory.mktemp("two")) as two,
    ):
        site = make_site(tmp_path, key_pair, one)
        site.reset()
        args = site.build_args()
        # The first build holds the lock for as long as its first fsync takes.
        slow = "fsync:delay_enter=500000:when=1"
        first = one.start(*args, cwd=tmp_path, env=site.env, fault=slow)
        wait_until(lambda: hidden(site.dist))
        second = two.run(*args, cwd=tmp_path, env=site.env)
        ended = first.wait()
    assert (ended.returncode, second.returncode) == (0, 1)
    assert second.stderr.startswith("error: another build is running in dist\n")
    assert site.state() == "new"
    assert hidden(site.dist) == []


def test_a_release_is_not_signed_while_a_build_is_running(
    tmp_path: Path, tools: Tools, key_pair: KeyPair
) -> None:
    write_artefacts(tmp_path / "artefacts")
    assert tools(*_ARGS).returncode == 0
    before = tree(tmp_path / "dist")
    with distribution_lock(tmp_path / "dist"):
        # Run in the channel's folder; the lock is the same.
        inside = Tools(tmp_path / "dist" / "stable")
        env = {"SIGNING_SECRET_KEY": str(key_pair.secret)}
        signed = inside("sign", "manifest.json.unsigned", env=env)
    assert signed.returncode == 1
    assert "another build is running" in signed.stderr
    assert tree(tmp_path / "dist") == before


def test_the_lock_ends_with_the_block_and_needs_a_folder(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            distribution_lock(tmp_path),
            pytest.raises(DistributionError),
            distribution_lock(tmp_path),
        ):
            pass
    (tmp_path / "dist").touch()
    with (
        pytest.raises(AccessError, match="Not a directory"),
        distribution_lock(tmp_path / "dist"),
    ):
        pass


def _fail_after(_: object) -> None:
    raise DistributionError(["no"])


def test_a_new_folder_is_removed_only_if_the_build_fails_and_it_is_empty(tmp_path: Path) -> None:
    channel = tmp_path / "a" / "dist" / "stable"
    with pytest.raises(DistributionError), channel_folder(channel):
        _fail_after(channel.joinpath("..").resolve(strict=True))
    assert tree(tmp_path) == {}
    with channel_folder(channel):
        pass
    assert channel.is_dir()
    # A folder that is not empty is kept, too.
    with pytest.raises(DistributionError), channel_folder(tmp_path / "dist" / "stable"):
        _fail_after((tmp_path / "dist" / "notes.txt").write_bytes(b""))
    assert list(tree(tmp_path / "dist")) == ["notes.txt"]


def test_the_error_for_a_full_disk_names_the_channel_and_not_the_hidden_folder(
    tmp_path: Path,
) -> None:
    def write(staging: Path) -> None:
        assert staging.name.startswith(".")
        raise OSError(28, "No space left on device", str(staging / "artefact"))

    with (
        pytest.raises(AccessError) as caught,
        staging_folder(tmp_path, CalVer.parse(VERSION)) as staging,
    ):
        write(staging)
    assert caught.value.message == f"{tmp_path}: No space left on device"
    assert tree(tmp_path) == {}


def test_an_existing_release_gets_new_signatures_and_keeps_its_artefacts(
    tmp_path: Path,
) -> None:
    there = write_artefacts(tmp_path / "there", {"a": b"1", "a.minisig": b"old"})
    staged = write_artefacts(tmp_path / "staged", {"a": b"1", "a.minisig": b"new"})
    # Its signatures do not count as unexpected files.
    require_same_artefacts(there, {"a": digest_file(staged / "a")})
    with pytest.raises(DistributionError, match=r"has no a\.minisig2; .*a has different bytes$"):
        require_same_artefacts(
            there, dict.fromkeys(("a", "a.minisig2"), digest_file(there / "a.minisig"))
        )
    inode = (there / "a").stat().st_ino
    publish_staged(staged, there)
    assert (there / "a").stat().st_ino == inode
    assert (there / "a.minisig").read_bytes() == b"new"
