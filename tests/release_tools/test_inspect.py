"""`release-tools inspect`: a manifest is shown but not trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.raw_server import serving
from tests.support.releases import VERSION, KeyPair, Tools
from tests.support.resigning import change_manifest


def test_a_manifest_is_shown_signed_or_not_with_a_note_that_nothing_was_verified(
    signed_release: Path, tools: Tools
) -> None:
    for name in ("manifest.json", "manifest.json.unsigned"):
        done = tools("inspect", "dist")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"{VERSION} on stable" in done.stdout
        assert done.stdout.count("sha256 ") == 3
        assert done.stdout.splitlines()[-1].startswith("Not verified")
        if name == "manifest.json":
            manifest = signed_release / "stable" / name
            manifest.rename(manifest.with_name("manifest.json.unsigned"))


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


def test_a_bad_signature_does_not_matter_and_no_manifest_is_shown_as_verified(
    signed_release: Path, tools: Tools, key_pair: KeyPair
) -> None:
    (signed_release / "stable/manifest.json.minisig").write_bytes(b"nonsense")
    document = json.loads(tools("inspect", "dist", "--json").stdout)
    manifest = json.loads((signed_release / "stable/manifest.json").read_bytes())
    assert (manifest | {"verified": False}).items() <= document.items()

    def change(document: dict[str, Any]) -> None:
        document |= {"verified": True, "manifest": "https://elsewhere.example"}

    path = change_manifest(signed_release / "stable", key_pair, change)
    document = json.loads(tools("inspect", "dist", "--json").stdout)
    assert list(document)[:2] == ["manifest", "verified"]
    assert (document["manifest"], document["verified"]) == (path.as_uri(), False)
