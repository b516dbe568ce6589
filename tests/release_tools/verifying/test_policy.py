"""What a release must fulfil besides its signatures, at the limits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from platform_common.errors import PlatformError
from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import Manifest
from release_tools.manifest.parser import parse
from release_tools.signing.trusted_comment import render_comment
from release_tools.verifying.policy import (
    STALE_AFTER,
    Finding,
    VerifyPolicy,
    check_comment,
    check_manifest,
    check_name,
)
from tests.support.manifests import document, encode, entry
from tests.support.signatures import signed

RELEASED = datetime(2026, 11, 1, 12, tzinfo=UTC)
SECOND, DAY, WEEK = timedelta(seconds=1), timedelta(days=1), timedelta(days=7)
MANIFEST = parse(encode(document()))


def findings(manifest: Manifest = MANIFEST, **asked: Any) -> list[Finding]:
    policy = replace(VerifyPolicy(now=RELEASED), **asked)
    return list(check_manifest(policy, manifest, "manifest.json"))


def codes(manifest: Manifest = MANIFEST, **asked: Any) -> list[tuple[str, bool]]:
    return [(finding.code, finding.warning) for finding in findings(manifest, **asked)]


@pytest.mark.parametrize(
    ("age", "max_age", "expected"),
    [
        *((timedelta(0), None, ""), (STALE_AFTER, None, ""), (-DAY, None, "")),
        *((STALE_AFTER + SECOND, None, "E_FREEZE"), (20_000 * DAY, None, "E_FREEZE")),
        *((-DAY - SECOND, None, "E_FUTURE"), (-9_000 * DAY, None, "E_FUTURE")),
        # A requested check is an error, and replaces the warning.
        *((WEEK, WEEK, ""), (WEEK + SECOND, WEEK, "E_FREEZE"), (60 * DAY, WEEK, "E_FREEZE")),
        *((-DAY - SECOND, WEEK, "E_FUTURE"), (60 * DAY, 90 * DAY, "")),
        *((timedelta(0), timedelta(0), ""), (SECOND, timedelta(0), "E_FREEZE")),
    ],
    ids=str,
)
def test_rel_03_rel_04_a_release_from_long_ago_or_from_the_future_is_reported(
    age: timedelta, max_age: timedelta | None, expected: str
) -> None:
    found = codes(now=RELEASED + age, max_age=max_age)
    assert found == ([(expected, max_age is None)] if expected else [])


@pytest.mark.parametrize(
    ("floor", "rollback"),
    [
        *(("2026.11.1", False), ("2026.11.01", False), ("2026.11.1-rc1", False)),
        *(("2025.12.31", False), ("2026.11.2-rc1", True), ("2026.11.10", True)),
        ("9999.12.31", True),
    ],
)
def test_rel_01_a_release_older_than_requested_is_a_rollback(floor: str, *, rollback: bool) -> None:
    found = codes(not_older_than=CalVer.parse(floor))
    assert found == ([("E_ROLLBACK", False)] if rollback else [])


@pytest.mark.parametrize(
    ("channel", "expected"),
    [(None, []), ("stable", []), ("beta", [("E_CHANNEL", False)]), ("", [("E_CHANNEL", False)])],
)
def test_rel_05_the_channel_must_be_the_requested_one(
    channel: str | None, expected: list[tuple[str, bool]]
) -> None:
    assert codes(channel=channel) == expected


def test_all_findings_are_reported_together_and_name_the_manifest() -> None:
    found = findings(
        now=RELEASED + timedelta(days=46), channel="dev", not_older_than=CalVer.parse("2027.1.1")
    )
    assert [finding.code for finding in found] == ["E_CHANNEL", "E_ROLLBACK", "E_FREEZE"]
    assert {finding.where for finding in found} == {"manifest.json"}
    assert "stable, not dev" in found[0].message
    assert "2026.11.1 is older than 2027.1.1" in found[1].message
    assert "46 days old, over the limit of 45" in found[2].message


# File names.


_NAMED = "platform-khoj-qemu-x86_64"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"filename": "image.qcow2"}, [("E_NAME", True)]),
        ({"profile": "hermes"}, [("E_NAME", True)]),
        ({"target": "qemu-aarch64"}, [("E_NAME", True)]),
        ({"filename": f"{_NAMED}-2026.10.1-stable.qcow2"}, [("E_NAME", True)]),
        ({"filename": f"{_NAMED}-2026.11.1-dev.qcow2"}, [("E_CHANNEL", False)]),
        ({"filename": "anything-beta.qcow2"}, [("E_CHANNEL", False)]),
        ({"filename": "anything-beta.img.xz"}, [("E_NAME", True)]),
    ],
    ids=lambda value: str(value)[:50],
)
def test_rel_05_a_file_name_must_agree_with_its_entry(
    changes: dict[str, str], expected: list[tuple[str, bool]]
) -> None:
    manifest = parse(encode(document(artefacts=[entry(**changes)])))
    found = check_name(manifest, manifest.artefacts[0], "here")
    assert [(finding.code, finding.warning) for finding in found] == expected


# Trusted comments.


def test_a_file_name_cannot_add_words_to_the_comment() -> None:
    with pytest.raises(PlatformError, match="a tab"):
        render_comment("notes\tfile:manifest.json", 5)


GOOD = render_comment("f", 5, MANIFEST)


WRONG, WARNED = [("E_COMMENT", False)], [("E_COMMENT", True)]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        *((GOOD, []), ("file:f", []), ("channel:stable\trelease:2026.11.1\tfile:f\tmore:x", [])),
        *((GOOD.replace("file:f", f"file:{name}"), WRONG) for name in ("g", "", "F")),
        (GOOD.replace("2026.11.1", "2026.11.01"), WRONG),
        (GOOD.replace("stable", "beta"), WRONG),
        ("file:g\trelease:1\tchannel:x", WRONG * 3),
        *(("file:g\tfile:f", WRONG), ("file:f\trelease:2026.11.1\trelease:1", WRONG)),
        *(("timestamp:5", WARNED), ("", WARNED), ("profile:f", WARNED), ("file f", WARNED)),
    ],
    ids=ascii,
)
def test_rel_13_the_comment_of_a_signature_must_name_its_file(
    comment: str, expected: list[tuple[str, bool]]
) -> None:
    found = check_comment(signed(comment=comment), "f", MANIFEST, "f.minisig")
    assert [(finding.code, finding.warning) for finding in found] == expected


def test_without_a_manifest_only_the_file_name_must_agree() -> None:
    comment = "file:f\trelease:1\tchannel:nightly"
    assert list(check_comment(signed(comment=comment), "f", None, "f.minisig")) == []


def test_rel_19_each_oddity_is_an_error() -> None:
    odd = replace(signed(comment="file:f"), oddities=("a carriage return", "a NUL byte"))
    found = list(check_comment(odd, "f", MANIFEST, "f.minisig"))
    assert [(finding.code, finding.warning) for finding in found] == [("E_SIG", False)] * 2
    assert found[0].message == "the signature file has a carriage return"


def test_rel_20_a_hostile_word_is_shown_escaped() -> None:
    odd = replace(signed(), trusted_comment=b"file:\x1b[2J<b>")
    (finding,) = check_comment(odd, "f", MANIFEST, "f.minisig")
    assert finding.message.isprintable()
    assert r"\x1b[2J<b>" in finding.message
