"""A disk that is full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faults import Disk, small_disk
from tests.support.releases import (
    KeyPair,
    Tools,
    artefact_files,
    clean_environment,
    program,
    pseudo_random,
    write_artefacts,
)
from tests.support.trees import tree

_NEW = "2026.11.2"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small disk."""
    with small_disk(tmp_path / "disk") as disk:
        yield disk


def _run(
    prefix: list[str], *args: str | Path, cwd: Path, key: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, program(), *map(str, args)],
        cwd=cwd,
        env=clean_environment() | ({"SIGNING_SECRET_KEY": str(key)} if key else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def _assert_full(ended: subprocess.CompletedProcess[str]) -> None:
    assert ended.returncode == 5, ended.stderr
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.rstrip().endswith(("No space left on device", "File too large"))
    assert ended.stderr.count("\n") == 1


def _release(tmp_path: Path, disk: Disk, key_pair: KeyPair, *, unsigned: bool = False) -> Path:
    """A small release on the small disk."""
    name = "platform-khoj-qemu-x86_64-2026.11.1-stable.qcow2"
    folder = write_artefacts(tmp_path / "small", {name: b"image"})
    args = ("build", folder, "--version", "2026.11.1", "--channel", "stable")
    dist = disk.folder / "dist"
    key = None if unsigned else key_pair.secret
    built = _run([], *args, "--output", dist, cwd=tmp_path, key=key)
    assert built.returncode == 0, built.stderr
    return dist


def test_pub_09_and_fs_01_a_disk_that_is_full_in_a_build_leaves_the_old_release(
    tmp_path: Path, disk: Disk, key_pair: KeyPair, tools: Tools
) -> None:
    dist = _release(tmp_path, disk, key_pair)
    files = artefact_files(_NEW) | {
        f"platform-khoj-rpi4-{_NEW}-stable.img.xz": pseudo_random(1 << 20, "big")
    }
    folder = write_artefacts(tmp_path / "big", files)
    for path in folder.iterdir():
        # A file that is not readable for all is copied and not linked.
        path.chmod(0o600)
    before = tree(dist)
    args = ("build", folder, "--version", _NEW, "--channel", "stable", "--output", dist)
    full = _run(disk.fill(100_000), *args, cwd=tmp_path, key=key_pair.secret)
    _assert_full(full)
    assert tree(dist) == before
    verified = tools("verify", dist, "-p", key_pair.public)
    assert verified.returncode == 0, verified.stdout


def test_fs_01_a_disk_that_is_full_when_the_first_folder_is_made_is_left_as_it_was(
    tmp_path: Path, disk: Disk, key_pair: KeyPair
) -> None:
    folder = write_artefacts(tmp_path / "artefacts")
    for path in folder.iterdir():
        path.chmod(0o600)
    prefix = disk.fill(0)
    before = tree(disk.folder)
    args = ("build", folder, "--version", "2026.11.1", "--channel", "stable")
    full = _run(prefix, *args, "--output", disk.folder / "a" / "b", cwd=tmp_path)
    _assert_full(full)
    assert tree(disk.folder) == before


def test_fs_01_a_disk_that_is_full_when_a_release_is_signed_leaves_it_unsigned(
    tmp_path: Path, disk: Disk, key_pair: KeyPair
) -> None:
    dist = _release(tmp_path, disk, key_pair, unsigned=True)
    before = tree(dist)
    manifest = dist / "stable" / "manifest.json.unsigned"
    full = _run(disk.fill(0), "sign", manifest, cwd=tmp_path, key=key_pair.secret)
    _assert_full(full)
    assert tree(dist) == before


def test_fs_01_a_disk_that_is_full_when_a_file_is_signed_gets_no_signature(
    tmp_path: Path, disk: Disk, key_pair: KeyPair
) -> None:
    path = disk.folder / "notes.txt"
    path.write_bytes(b"notes")
    prefix = disk.fill(0)
    before = tree(disk.folder)
    full = _run(prefix, "sign", path, cwd=tmp_path, key=key_pair.secret)
    _assert_full(full)
    assert tree(disk.folder) == before


@pytest.mark.parametrize("left_bytes", [0, 100], ids=["for neither", "for no second key"])
def test_fs_01_a_disk_that_is_full_gets_neither_key_of_a_pair(
    tmp_path: Path, disk: Disk, left_bytes: int
) -> None:
    prefix = disk.fill(left_bytes)
    before = tree(disk.folder)
    # The public key is the smaller file, so the limit is on the secret key's folder alone.
    paths = ("--secret-key", disk.folder / "k.key", "--public-key", disk.folder / "k.pub")
    full = _run(prefix, "keygen", *paths, "--no-password", cwd=tmp_path)
    _assert_full(full)
    assert tree(disk.folder) == before


def test_a_public_key_that_cannot_be_written_takes_the_secret_key_with_it(
    tmp_path: Path, disk: Disk
) -> None:
    prefix = disk.fill(0)
    secret = tmp_path / "k.key"
    paths = ("--secret-key", secret, "--public-key", disk.folder / "k.pub")
    full = _run(prefix, "keygen", *paths, "--no-password", cwd=tmp_path)
    _assert_full(full)
    assert not secret.exists()


def test_an_output_that_takes_nothing_is_told_in_one_sentence(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [program(), "compare", "2026.11.1", "2026.11.2", "--json"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert ended.returncode == 5
    assert ended.stderr == "error: reading or writing: No space left on device\n"
