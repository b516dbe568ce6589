"""What `release-tools sign` does to files and to releases that were built without a key."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from release_tools.minisign import Signature
from tests.support.releases import VERSION, KeyPair, Tools, artefact_files, write_artefacts
from tests.support.trees import hidden, tree

_MANIFEST = "dist/stable/manifest.json.unsigned"


@pytest.fixture
def key(key_pair: KeyPair) -> dict[str, str]:
    """An environment with a key."""
    return {"SIGNING_SECRET_KEY": str(key_pair.secret), "SOURCE_DATE_EPOCH": "1793491200"}


@pytest.fixture
def unsigned(tmp_path: Path, tools: Tools) -> Path:
    """The manifest of a release that is not signed."""
    write_artefacts(tmp_path / "artefacts")
    args = ("build", "artefacts", "--version", VERSION, "--channel", "stable")
    built = tools(*args, env={"SOURCE_DATE_EPOCH": "1793491200"})
    assert built.returncode == 0, built.stderr
    return tmp_path / _MANIFEST


def test_signing_an_unsigned_release_gives_what_a_signed_build_gives(
    unsigned: Path, tools: Tools, key: dict[str, str]
) -> None:
    signed = tools("sign", _MANIFEST, env=key)
    assert signed.returncode == 0, signed.stderr
    args = ("build", "artefacts", "--version", VERSION, "--channel", "stable")
    assert tools(*args, "--output", "other", env=key).returncode == 0
    assert tree(tools.folder / "dist") == tree(tools.folder / "other")


def test_a_release_in_the_folder_of_another_channel_is_not_signed(
    unsigned: Path, tools: Tools, key: dict[str, str]
) -> None:
    (tools.folder / "dist/stable").rename(tools.folder / "dist/dev")
    before = tree(tools.folder / "dist")
    signed = tools("sign", "dist/dev/manifest.json.unsigned", env=key)
    assert signed.returncode == 1
    assert "is of the channel stable, and lies in dev" in signed.stderr
    assert tree(tools.folder / "dist") == before


def test_the_signatures_are_named_one_on_a_line_and_the_manifests_last(
    unsigned: Path, tools: Tools, key: dict[str, str]
) -> None:
    lines = tools("sign", _MANIFEST, env=key).stdout.splitlines()
    assert len(lines) == 4
    assert all((tools.folder / line).is_file() for line in lines)
    assert lines[-1] == "dist/stable/manifest.json.minisig"


def test_members_that_we_do_not_know_are_kept(
    unsigned: Path, tools: Tools, key: dict[str, str], key_pair: KeyPair
) -> None:
    document = json.loads(unsigned.read_bytes())
    document["support_until"] = "2028-01"
    document["artefacts"][1]["notes"] = {"é": [1, 2]}
    unsigned.write_text(json.dumps(document))
    assert tools("sign", _MANIFEST, env=key).returncode == 0
    signed = json.loads((unsigned.parent / "manifest.json").read_bytes())
    assert signed == document
    assert tools("verify", "dist", "-p", key_pair.public).returncode == 0


def test_an_artefact_that_changed_since_the_build_is_refused_before_anything_is_written(
    unsigned: Path, tools: Tools, key: dict[str, str]
) -> None:
    name = next(name for name in artefact_files() if name.endswith("qcow2"))
    artefact = unsigned.parent / VERSION / name
    artefact.unlink()
    artefact.write_bytes(b"another image")
    before = tree(tools.folder / "dist")
    signed = tools("sign", _MANIFEST, env=key)
    assert signed.returncode == 1
    assert f"{name} is not the file that the manifest lists" in signed.stderr
    assert tree(tools.folder / "dist") == before


@pytest.mark.parametrize(
    ("content", "exit_code"),
    [
        (b"{", 3),
        (b'{"schema_version": 2}', 4),
        (b'{"schema_version": 1}', 3),
        (b"", 3),
    ],
    ids=["no JSON", "another schema version", "not whole", "empty"],
)
def test_a_manifest_that_is_not_valid_is_never_signed(
    unsigned: Path, tools: Tools, key: dict[str, str], content: bytes, exit_code: int
) -> None:
    unsigned.write_bytes(content)
    before = tree(tools.folder / "dist")
    assert tools("sign", _MANIFEST, env=key).returncode == exit_code
    assert tree(tools.folder / "dist") == before


def test_a_missing_artefact_is_refused_before_anything_is_written(
    unsigned: Path, tools: Tools, key: dict[str, str]
) -> None:
    (unsigned.parent / VERSION / max(artefact_files())).unlink()
    before = tree(tools.folder / "dist")
    assert tools("sign", _MANIFEST, env=key).returncode == 5
    assert tree(tools.folder / "dist") == before


def test_one_file_of_several_that_is_missing_keeps_the_others_unsigned(
    tools: Tools, key: dict[str, str]
) -> None:
    write_artefacts(tools.folder, {"a.txt": b"a"})
    signed = tools("sign", "a.txt", "b.txt", env=key)
    assert signed.returncode == 5
    assert signed.stderr == "error: b.txt: No such file or directory\n"
    assert list(tree(tools.folder)) == ["a.txt"]


def test_any_file_gets_a_signature_that_minisign_verifies(
    tools: Tools, key: dict[str, str], key_pair: KeyPair
) -> None:
    write_artefacts(tools.folder, {"a file.txt": b"a", "empty": b""})
    assert tools("sign", "a file.txt", "empty", env=key).returncode == 0
    for name in ("a file.txt", "empty"):
        subprocess.run(
            ["minisign", "-V", "-q", "-p", key_pair.public, "-m", name],
            cwd=tools.folder,
            check=True,
            timeout=20,
        )
    comment = Signature.parse((tools.folder / "empty.minisig").read_bytes()).comment_text
    assert comment == "timestamp:1793491200\tfile:empty\thashed"


def test_a_path_that_is_given_twice_is_signed_once(tools: Tools, key: dict[str, str]) -> None:
    write_artefacts(tools.folder, {"a.txt": b"a"})
    signed = tools("sign", "a.txt", "a.txt", "--json", env=key)
    assert json.loads(signed.stdout) == {"ok": True, "signatures": ["a.txt.minisig"]}


def test_releases_of_two_channels_are_signed_by_one_command(
    unsigned: Path, tools: Tools, key: dict[str, str], key_pair: KeyPair
) -> None:
    write_artefacts(tools.folder / "betas", artefact_files(channel="beta"))
    tools("build", "betas", "--version", VERSION, "--channel", "beta")
    beta = "dist/beta/manifest.json.unsigned"
    signed = tools("sign", _MANIFEST, beta, env=key)
    assert signed.returncode == 0, signed.stderr
    assert tools("verify", "dist", "-p", key_pair.public).returncode == 0


def test_leak_06_signing_removes_what_a_killed_signing_left(
    unsigned: Path, tools: Tools, key: dict[str, str], key_pair: KeyPair
) -> None:
    write_artefacts(unsigned.parent / VERSION, {".a.minisig.4711.0123abcd.tmp": b"half"})
    assert tools("sign", _MANIFEST, env=key).returncode == 0
    assert hidden(tools.folder / "dist") == []
    assert tools("verify", "dist", "-p", key_pair.public).returncode == 0


@pytest.mark.parametrize("kind", ["folder", "fifo"])
def test_fs_07_what_is_no_regular_file_is_not_signed(
    tools: Tools, key: dict[str, str], kind: str
) -> None:
    path = tools.folder / "thing"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    signed = tools("sign", "thing", env=key)
    assert signed.returncode == 5
    assert signed.stderr == "error: thing is not a regular file\n"
