"""Reports for people and scripts."""

from __future__ import annotations

import json

import pytest

from release_tools.distribution.manifest_location import ManifestLocation
from release_tools.manifest.parser import parse
from release_tools.reporting import (
    print_manifest,
    print_verification,
    verdict,
    verification_json,
)
from release_tools.verifying.policy import Finding
from release_tools.verifying.report import CheckedArtefact, ReleaseReport
from tests.support.manifests import SHA256, document, encode, entry
from tests.support.signatures import secret_key, signed

URL = "https://dl.example/stable/manifest.json"
KEY_ID = "{:016X}".format(int.from_bytes(secret_key().key_id, "little"))
WARNING = Finding("E_FREEZE", "manifest.json", "the manifest is old", warning=True)
ERROR = Finding("E_HASH", "a\x1b[2Jb", "the SHA-256 is\nanother")
NAME = "platform-khoj-qemu-x86_64-2026.11.1-stable.qcow2"


def report(*findings: Finding, read: bool = True, **members: object) -> ReleaseReport:
    """A report on one release with one artefact and these findings."""
    manifest = parse(encode(document(**members)))
    checked = CheckedArtefact(manifest.artefacts[0], URL if read else None, findings)
    return ReleaseReport(ManifestLocation(URL), manifest, signed(), [], [checked])


def test_the_verdict_on_a_good_release_names_it_and_its_key() -> None:
    assert verdict([report(WARNING)]) == (
        f"TRUSTED: release 2026.11.1 (stable), 1 of 1 artefacts read, signed by {KEY_ID}"
    )


def test_the_verdict_on_several_releases_names_each_and_the_key_once() -> None:
    line = verdict([report(), report(channel="beta")])
    assert "2026.11.1 (stable), 2026.11.1 (beta), 2 of 2 artefacts read" in line
    assert line.endswith(f"signed by {KEY_ID}")
    assert "(stable), the manifest only, signed by" in verdict([report(read=False)])


def test_the_verdict_on_a_bad_release_has_one_line_without_control_characters() -> None:
    line = verdict([report(WARNING), report(ERROR, ERROR)])
    assert line == r"DO NOT TRUST: 2 findings, the first E_HASH at a\x1b[2Jb"
    assert verdict([report(ERROR)]).startswith("DO NOT TRUST: 1 finding, ")


def test_the_text_for_people_has_each_artefact_its_findings_and_the_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_verification([report(WARNING)])
    lines = capsys.readouterr().out.split("\n")
    assert lines[0] == f"manifest   {URL}"
    assert lines[1] == "release    2026.11.1 on stable, released 2026-11-01T12:00:00Z"
    assert lines[2] == f"signature  of key {KEY_ID}"
    assert lines[3] == f"verified   {NAME}  68.4 KiB"
    assert lines[4] == "  E_FREEZE warning: manifest.json: the manifest is old"
    assert lines[-2].startswith("TRUSTED: ")
    # A reference is shown with its meaning.
    reference = entry(format="oci", filename="a.oci", url="oci://registry.example/a")
    print_verification([report(artefacts=[reference], tracker={})])
    assert "a.oci  68.4 KiB  = oci://registry.example/a\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("findings", "read", "word"),
    [
        *(((), True, "verified"), ((WARNING,), True, "verified"), ((ERROR,), True, "FAILED")),
        *(((ERROR,), False, "FAILED"), ((), False, "not read"), ((WARNING,), False, "not read")),
    ],
)
def test_an_artefact_is_verified_failed_or_not_read(
    capsys: pytest.CaptureFixture[str], findings: tuple[Finding, ...], word: str, *, read: bool
) -> None:
    print_verification([report(*findings, read=read)])
    assert f"\n{word:<10} {NAME}" in capsys.readouterr().out
    document = verification_json("dist", [report(*findings, read=read)])
    assert document["releases"][0]["artefacts"][0]["status"] == word.lower()


def test_rel_20_foreign_text_is_escaped_for_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = "\x1b]0;owned\x07\r\n\u202e<b>\x9b2J"
    bad = report(
        Finding("E_SIG", hostile, hostile),
        artefacts=[entry(filename="a\u202e\x9b2Jb", url="oci://x/\u2028\x9b", format="oci")],
        wizard_version=hostile,
        tracker={hostile: hostile},
    )
    bad.findings.append(Finding("E_COMMENT", hostile, hostile))
    bad.location = ManifestLocation(f"https://dl.example/{hostile}")
    print_verification([bad])
    assert bad.manifest is not None
    print_manifest(bad.location, bad.manifest)
    shown = capsys.readouterr().out
    assert "E_SIG" in shown
    assert all(letter.isprintable() or letter == "\n" for letter in shown)


def test_the_json_of_a_verification_has_every_fact() -> None:
    found = verification_json("dist", [report(ERROR, WARNING)])
    findings = [
        {name: getattr(finding, name) for name in ("code", "where", "message", "warning")}
        for finding in (ERROR, WARNING)
    ]
    told = ("filename", "target", "profile", "format", "size_bytes", "sha256")
    artefact = {name: entry()[name] for name in told}
    release = {
        "manifest": URL,
        "ok": False,
        "release_version": "2026.11.1",
        "channel": "stable",
        "released_at": "2026-11-01T12:00:00Z",
        "key_id": KEY_ID,
        "trusted_comment": "timestamp:1793534400\tfile:artefact\thashed",
        "artefacts": [artefact | {"status": "failed", "read_from": URL, "findings": findings}],
    }
    assert json.loads(json.dumps(found)) == {
        "ok": False,
        "exit_code": 1,
        "location": "dist",
        "verdict": r"DO NOT TRUST: 1 finding, the first E_HASH at a\x1b[2Jb",
        "releases": [release],
        "findings": findings,
    }


def test_the_json_of_a_release_without_manifest_or_signature_is_short() -> None:
    unread = ReleaseReport(ManifestLocation(URL), findings=[Finding("E_UNREADABLE", URL, "gone")])
    found = verification_json("dist", [unread])
    assert found["releases"] == [{"manifest": URL, "ok": False, "artefacts": []}]
    assert (found["ok"], found["exit_code"]) == (False, 5)


def test_inspecting_shows_everything_and_says_that_nothing_was_verified(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_manifest(ManifestLocation(URL), parse(encode(document())))
    lines = capsys.readouterr().out.split("\n")
    assert "wizard     3.1" in lines
    assert "chat UI    0.9" in lines
    assert "tracker khoj 1.42.0" in lines
    assert f"qcow2      {NAME}  68.4 KiB" in lines
    assert f"           https://dl.example/stable/2026.11.1/{NAME}" in lines
    assert f"           sha256 {SHA256}" in lines
    assert lines[-2].startswith("Not verified: ")
    # An artefact without a URL is beside the manifest; a float cannot represent this size.
    bare = {name: value for name, value in entry(size_bytes=10**400).items() if name != "url"}
    print_manifest(ManifestLocation(URL), parse(encode(document(artefacts=[bare]))))
    shown = capsys.readouterr().out
    assert " TiB\n" in shown
    assert f"           https://dl.example/stable/{NAME}\n" in shown


def test_no_secret_in_an_address_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    secret_url = "https://user:hidden@dl.example/stable/manifest.json?token=hidden"
    manifest = parse(encode(document()))
    found = ReleaseReport(ManifestLocation(secret_url), manifest, signed(), [], [])
    found.artefacts = [CheckedArtefact(manifest.artefacts[0], secret_url)]
    print_verification([found])
    print_manifest(ManifestLocation(secret_url), manifest)
    said = capsys.readouterr().out + json.dumps(verification_json(secret_url, [found]))
    assert "hidden" not in said
    assert said.count("https://dl.example/stable/") >= 6
