"""`release-tools inspect`: a manifest shown and not trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.raw_server import serving
from tests.support.releases import VERSION, Tools


def test_a_manifest_is_shown_with_the_note_that_nothing_was_verified(
    signed_release: Path, tools: Tools
) -> None:
    done = tools("inspect", "dist")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{VERSION} on stable" in done.stdout
    assert done.stdout.count("sha256 ") == 3
    assert done.stdout.splitlines()[-1].startswith("Not verified")


def test_a_bad_signature_does_not_matter_and_json_says_so(
    signed_release: Path, tools: Tools
) -> None:
    (signed_release / "stable/manifest.json.minisig").write_bytes(b"nonsense")
    document = json.loads(tools("inspect", "dist", "--json").stdout)
    assert document["verified"] is False
    manifest = json.loads((signed_release / "stable/manifest.json").read_bytes())
    assert manifest.items() <= document.items()


def test_an_unsigned_manifest_can_be_inspected(signed_release: Path, tools: Tools) -> None:
    manifest = signed_release / "stable/manifest.json"
    manifest.rename(manifest.with_name("manifest.json.unsigned"))
    assert tools("inspect", "dist").returncode == 0


def test_several_manifests_are_a_list_in_json(signed_release: Path, tools: Tools) -> None:
    (signed_release / "beta").mkdir()
    manifest = (signed_release / "stable/manifest.json").read_bytes()
    (signed_release / "beta/manifest.json").write_bytes(manifest)
    assert len(json.loads(tools("inspect", "dist", "--json").stdout)) == 2


def test_a_manifest_is_inspected_over_http(signed_release: Path, tools: Tools) -> None:
    manifest = (signed_release / "stable/manifest.json").read_bytes()
    with serving({"/stable/manifest.json": manifest}) as server:
        done = tools("inspect", f"{server.url}/stable")
        assert server.paths == ["/stable/manifest.json"]
        assert done.returncode == 0
        assert f"{server.url}/stable/{VERSION}/platform-" in done.stdout


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (b"", 3, "not valid JSON"),
        (b"[]", 3, "must be an object"),
        (b'{"schema_version": 2}', 4, "Please upgrade the control CLI."),
        (b'{"schema_version": 1}', 3, "artefacts"),
    ],
    ids=["empty", "list", "version 2", "no members"],
)
def test_what_is_no_manifest_is_told_with_its_exit_code(
    content: bytes, code: int, said: str, tmp_path: Path, tools: Tools
) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    done = tools("inspect", "manifest.json")
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
