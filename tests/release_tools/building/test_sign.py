"""`release-tools sign`, on files and on releases that were built without a key."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from release_tools.signing.minisign import Signature
from tests.support.releases import VERSION, KeyPair, Tools, artefact_files, write_artefacts
from tests.support.trees import tree

_MANIFEST = "dist/stable/manifest.json.unsigned"


@pytest.fixture
def key(key_pair: KeyPair) -> dict[str, str]:
    """An environment with a key."""
    return {"SIGNING_SECRET_KEY": str(key_pair.secret), "SOURCE_DATE_EPOCH": "1793491200"}


@pytest.fixture
def unsigned(tmp_path: Path, tools: Tools) -> Path:
    """The manifest of an unsigned release."""
    write_artefacts(tmp_path / "artefacts")
    args = ("build", "artefacts", "--version", VERSION, "--channel", "stable")
    built = tools(*args, env={"SOURCE_DATE_EPOCH": "1793491200"})
    assert built.returncode == 0, built.stderr
    return tmp_path / _MANIFEST


def test_leak_06_signing_an_unsigned_release_gives_the_same_bytes_as_a_signed_build(
    unsigned: Path, tools: Tools, key: dict[str, str]
) -> None:
    # Left-overs of a signing that was killed are removed.
    write_artefacts(unsigned.parent / VERSION, {".a.minisig.4711.0123abcd.tmp": b"half"})
    signed = tools("sign", _MANIFEST, env=key)
    assert signed.returncode == 0, signed.stderr
    lines = signed.stdout.splitlines()
    assert len(lines) == 4
    assert all((tools.folder / line).is_file() for line in lines)
    assert lines[-1] == "dist/stable/manifest.json.minisig"
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
    assert "is for the channel stable but is in the folder dev" in signed.stderr
    assert tree(tools.folder / "dist") == before


def test_unknown_members_are_kept(
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


def test_an_artefact_changed_since_the_build_is_refused_before_anything_is_written(
    unsigned: Path, tools: Tools, key: dict[str, str]
) -> None:
    artefact = unsigned.parent / VERSION / max(artefact_files())
    artefact.unlink()
    refused = " is not the file that the manifest lists"
    for exit_code, said in ((5, "No such file"), (1, refused)):
        before = tree(tools.folder / "dist")
        signed = tools("sign", _MANIFEST, env=key)
        assert (signed.returncode, said in signed.stderr) == (exit_code, True)
        assert artefact.name in signed.stderr
        assert tree(tools.folder / "dist") == before
        artefact.write_bytes(b"another image")


def test_a_manifest_that_is_not_valid_is_never_signed(
    unsigned: Path, tools: Tools, key: dict[str, str]
) -> None:
    for content, exit_code in (
        (b"", 3),
        (b'{"schema_version": 2}', 4),
        (b'{"schema_version": 1}', 3),
    ):
        unsigned.write_bytes(content)
        before = tree(tools.folder / "dist")
        assert tools("sign", _MANIFEST, env=key).returncode == exit_code
        assert tree(tools.folder / "dist") == before


def test_any_file_gets_a_signature_that_minisign_verifies(
    tools: Tools, key: dict[str, str], key_pair: KeyPair
) -> None:
    write_artefacts(tools.folder, {"a file.txt": b"a", "empty": b""})
    signed = tools("sign", "a file.txt", "empty", "empty", "--json", env=key)
    assert json.loads(signed.stdout)["signatures"] == ["a file.txt.minisig", "empty.minisig"]
    for name in ("a file.txt", "empty"):
        subprocess.run(
            ["minisign", "-V", "-q", "-p", key_pair.public, "-m", name],
            cwd=tools.folder,
            check=True,
            timeout=20,
        )
    comment = Signature.parse((tools.folder / "empty.minisig").read_bytes()).comment_text
    assert comment == "timestamp:1793491200\tfile:empty\thashed"


def test_releases_of_two_channels_are_signed_by_one_command(
    unsigned: Path, tools: Tools, key: dict[str, str], key_pair: KeyPair
) -> None:
    write_artefacts(tools.folder / "betas", artefact_files(channel="beta"))
    tools("build", "betas", "--version", VERSION, "--channel", "beta")
    beta = "dist/beta/manifest.json.unsigned"
    signed = tools("sign", _MANIFEST, beta, env=key)
    assert signed.returncode == 0, signed.stderr
    assert tools("verify", "dist", "-p", key_pair.public).returncode == 0
