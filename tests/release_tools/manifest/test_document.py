"""The manifest: schema and code together, addresses of problems, and unchanged bytes."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from platform_common.resources import schema
from release_tools.manifest.calver import CalVer, CalVerError
from release_tools.manifest.document import ManifestError, SchemaVersionError, render
from release_tools.manifest.parser import parse
from release_tools.manifest.rules import MOST_PROBLEMS
from release_tools.manifest.vocabulary import CHANNELS, FORMATS
from tests.support.manifests import (
    ABSENT,
    CASES,
    HOSTILE_JSON,
    SHA256,
    Case,
    document,
    encode,
    entry,
    many,
)


def problems_of(value: Any) -> tuple[str, ...]:
    """The problems that `parse` reports; empty for a valid manifest."""
    try:
        parse(encode(value))
    except ManifestError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_schema_and_code_together_find_every_problem(case: Case) -> None:
    found = problems_of(case.document())
    assert len(found) >= len(case.problems)
    if not case.problems:
        assert found == ()
    for expected in case.problems:
        assert any(problem.startswith(expected) for problem in found), found
    addresses = {expected.partition(": ")[0] for expected in case.problems}
    assert {problem.partition(": ")[0] for problem in found} == addresses
    for problem in found:
        assert problem.replace("…", "").isascii()
        assert problem.isprintable()


VERSIONS = (
    *("2026.11.1", "2026.1.1", "2026.01.01", "0000.0.0", "9999.99.99", "2026.11.1-rc1"),
    *("2026.11.1-pre.1", "2026.11.1--", "2026.11.1-.", "2026.11.1-0", "2026.11.1-a-b"),
    *("2026.1.1-z", "2026.11.1-..", "", " ", "2026", "2026.11", "2026.11.", "2026.11.1."),
    *("2026.11.1.2", "2026.11.1-", "-", "-rc1", "v2026.11.1", "2026.11.1\n", "2026.11.1-rc1\n"),
    *("\n2026.11.1", " 2026.11.1", "2026.11.1 ", "２０２６.11.1", "2026.１.1", "2026.11.²"),
    *("٢٠٢٦.11.1", "20260.1.1", "202.1.1", "2026.111.1", "2026.1.111", "2026,1,1", "2026-11-1"),
    *("2026.11.1-RC1", "2026.11.1-rc_1", "2026.11.1-../x", "2026.11.1-ü", "2026.11.1+1"),
    *("+2026.1.1", "2026.-1.1", "2026.1_1.1", "2026.11.1\0", "2026.11.1-rc1\r\n", "2026..1"),
    *("26.1.1", "2026.1.1-ｒｃ", "2026.1.1-a b", "2026.1.1-a/b", "-2026.1.1"),
)
DIGESTS = (
    *("0" * 64, "f" * 64, SHA256, "", "0" * 63, "0" * 65, "F" * 64, "g" + "0" * 63),
    *(SHA256 + "\n", "\n" + SHA256, " " + SHA256[1:], SHA256[:-1] + "A", "0x" + "0" * 62),
    *("０" * 64, "0" * 63 + "²", "٠" * 64, "0" * 63 + "\0", "0" * 63 + "\n"),
)


def is_version(text: str) -> bool:
    """Check a version by hand, without a regular expression or `isdigit`."""
    numbers, dash, suffix = text.partition("-")
    parts = numbers.split(".")
    digits = all(set(part) <= set("0123456789") for part in parts)
    lengths = [len(part) for part in parts]
    plain = digits and len(parts) == 3 and lengths[0] == 4 and set(lengths[1:]) <= {1, 2}
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789.-")
    return plain and (not dash or (suffix != "" and set(suffix) <= allowed))


@pytest.mark.parametrize("text", VERSIONS, ids=ascii)
def test_rel_09_versions_are_checked_like_by_hand(text: str) -> None:
    assert (problems_of(document(release_version=text)) == ()) is is_version(text)
    with contextlib.nullcontext() if is_version(text) else pytest.raises(CalVerError):
        assert CalVer.parse(text).text == text


@pytest.mark.parametrize("text", DIGESTS, ids=ascii)
def test_rel_09_digests_are_checked_like_by_hand(text: str) -> None:
    good = len(text) == 64 and set(text) <= set("0123456789abcdef")
    assert (problems_of(document(artefacts=[entry(sha256=text)])) == ()) is good


# Addresses and completeness.


def test_every_problem_is_reported_at_once_with_its_address() -> None:
    bad = document(
        release_version="1",
        channel="nightly",
        released_at="2026-02-30T00:00:00Z",
        tracker={"khoj": 1},
        artefacts=[
            entry(sha256="x", size_bytes=1.0),
            entry(target="t", filename="a/b", url="a b"),
            {},
            entry(),
        ],
    )
    addresses = [problem.partition(": ")[0] for problem in problems_of(bad)]
    members = ("filename", "format", "minisig_url", "profile", "sha256", "size_bytes", "target")
    assert addresses == [
        *("artefacts[0].sha256", "artefacts[0].size_bytes"),
        *("artefacts[1].filename", "artefacts[1].url"),
        *(f"artefacts[2].{name}" for name in members),
        *("artefacts[3].filename", "artefacts[3]"),
        *("channel", "release_version", "released_at", "tracker.khoj"),
    ]


def test_the_artefacts_are_in_the_order_of_their_numbers() -> None:
    entries = many(12)
    for index in (10, 9, 2):
        entries[index]["sha256"] = "x"
    addresses = [problem.partition(".")[0] for problem in problems_of(document(artefacts=entries))]
    assert addresses == ["artefacts[2]", "artefacts[9]", "artefacts[10]"]


def test_a_message_lists_a_hundred_problems_and_the_beginning_of_a_value() -> None:
    entries = [item | {"sha256": ""} for item in many(130)]
    with pytest.raises(ManifestError) as caught:
        parse(encode(document(artefacts=entries)))
    assert len(caught.value.problems) == 130
    assert caught.value.message.count("must be 64") == 100
    assert caught.value.message.endswith("; and 30 more")
    (problem,) = problems_of(document(release_version="9" * 100_000))
    assert len(problem) < 200


# schema_version.


_OTHERS = {"2": 2, "0": 0, "-1": -1, "'1'": "1", "1.0": 1.0, "true": True, "null": None}


@pytest.mark.parametrize(
    ("shown", "value"),
    [*_OTHERS.items(), ("[1]", [1]), (str(10**30), 10**30), ("missing", ABSENT)],
    # No value of this run in an id, because parallel processes must agree on the ids.
    ids=lambda value: "absent" if value is ABSENT else str(value),
)
def test_rel_07_the_error_for_any_schema_version_but_one_says_to_upgrade(
    shown: str, value: Any
) -> None:
    changed = Case("", "schema_version", value).document()
    with pytest.raises(SchemaVersionError) as caught:
        parse(encode(changed))
    assert f"schema_version {shown} " in caught.value.message
    assert "upgrade the control CLI" in caught.value.hint


def test_rel_07_the_schema_version_is_checked_first() -> None:
    with pytest.raises(SchemaVersionError):
        parse(encode({"schema_version": 2, "artefacts": "moved elsewhere", "channel": 7}))
    with pytest.raises(SchemaVersionError, match="schema_version missing"):
        parse(b"{}")


# Hostile JSON: invalid JSON, and valid JSON that is not a manifest.

_NO_OBJECT = {name: case for name, case in HOSTILE_JSON.items() if "must be" in case[1]}
_REFUSED = {name: HOSTILE_JSON[name] for name in ("nothing", "deep objects", "member twice")}


@pytest.mark.parametrize(
    ("data", "fragment"), (_NO_OBJECT | _REFUSED).values(), ids=_NO_OBJECT | _REFUSED
)
def test_rel_08_hostile_json_is_reported_in_one_sentence(data: bytes, fragment: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse(data)
    assert len(caught.value.problems) == 1
    assert fragment in caught.value.problems[0]
    assert len(caught.value.message) < 300


# Dates.

DATES = {
    "2026-11-01T12:00:00Z": "2026-11-01T12:00:00",
    "2026-11-01t12:00:00z": "2026-11-01T12:00:00",
    "2026-11-01T12:00:00.123456789Z": "2026-11-01T12:00:00",
    "2026-11-01T12:00:00+00:00": "2026-11-01T12:00:00",
    "2026-11-01T12:00:00-00:00": "2026-11-01T12:00:00",
    "2026-11-01T12:00:00+05:30": "2026-11-01T06:30:00",
    "2026-11-01T12:00:00-23:59": "2026-11-02T11:59:00",
    "2024-02-29T00:00:00Z": "2024-02-29T00:00:00",
    "2016-12-31T23:59:60Z": "2016-12-31T23:59:59",
    "2015-06-30T23:59:60Z": "2015-06-30T23:59:59",
    "2017-01-01T08:59:60+09:00": "2016-12-31T23:59:59",
    "0001-01-01T00:00:00Z": "0001-01-01T00:00:00",
    "9999-12-31T23:59:59Z": "9999-12-31T23:59:59",
}
INVALID_DATES = (
    *("", "yesterday", "2026-11-01", "12:00:00Z", "2026-11-01T12:00:00", "2026-11-01T12:00Z"),
    *("2026-11-01 12:00:00Z", "2026-11-01T12:00:00Z\n", " 2026-11-01T12:00:00Z"),
    *("2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z"),
    *("2026-11-31T00:00:00Z", "2026-11-01T24:00:00Z", "2026-11-01T12:60:00Z"),
    *("2026-11-01T12:00:60Z", "2026-12-31T22:59:60Z", "2016-12-31T23:59:61Z"),
    *("2026-11-01T12:00:00+24:00", "2026-11-01T12:00:00+05:60", "2026-11-01T12:00:00+0530"),
    *("2026-11-01T12:00:00.Z", "2026-11-01T12:00:00,5Z", "2026-11-01T12:00:00 Z"),
    *("２０２６-11-01T12:00:00Z", "26-11-01T12:00:00Z", "+2026-11-01T12:00:00Z"),
    *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"),
    *("2026-W44-7T12:00:00Z", "2026-305T12:00:00Z", "1793534400", "2026-11-01T12:00:00UTC"),
)


@pytest.mark.parametrize(("text", "utc"), DATES.items(), ids=DATES)
def test_rel_04_a_date_is_one_point_in_time(text: str, utc: str) -> None:
    manifest = parse(encode(document(released_at=text)))
    assert manifest.released == datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert manifest.released_at == text


@pytest.mark.parametrize("text", INVALID_DATES, ids=ascii)
def test_rel_04_an_invalid_date_is_refused(text: str) -> None:
    (problem,) = problems_of(document(released_at=text))
    assert problem.startswith("released_at: must be an RFC 3339 date-time with an offset")


# One artefact for one device, and names that stay in their folder.


def test_rel_10_two_artefacts_for_one_device_are_ambiguous() -> None:
    twins = [*many(3), entry(target="t1", filename="other")]
    assert problems_of(document(artefacts=twins)) == (
        "artefacts[3]: has the target, profile and format of artefacts[1]",
    )


@pytest.mark.parametrize(
    "name",
    [
        *("../../etc/x", "/abs", "a/b", "-x", "a\0b", "a" * 300, ".", "..", "", "a\\b", ".hidden"),
        *("a/../b", "./a", "a/", "C:\\x", "a\nb", "ü" * 200, "-m", "--help", "..x", "x.."),
    ],
    ids=lambda name: ascii(name)[:20],
)
def test_rel_15_a_file_name_that_could_leave_its_folder_is_refused(name: str) -> None:
    found = problems_of(document(artefacts=[entry(filename=name)]))
    assert found
    assert all(problem.startswith("artefacts[0].filename: must ") for problem in found)


# Reading and writing.


def test_members_are_written_in_the_order_of_the_specification() -> None:
    later = {"by": ["someone", {"é": 1.5}]}
    manifest = parse(encode(document(artefacts=[entry(sha512="beef")], signer=later)))
    assert (manifest.extra, manifest.artefacts[0].extra) == ({"signer": later}, {"sha512": "beef"})
    backwards = dict(reversed(document(artefacts=[dict(reversed(entry().items()))]).items()))
    assert render(parse(encode(backwards))) == encode(document())
    optional = ("tracker", "wizard_version", "chat_ui_version")
    bare = {name: value for name, value in document().items() if name not in optional}
    manifest = parse(encode(bare))
    assert (manifest.tracker, manifest.wizard_version, manifest.chat_ui_version) == (None,) * 3
    assert render(manifest) == encode(bare)


def test_a_manifest_with_very_many_problems_is_refused_quickly() -> None:
    # Collected one by one, these 700,000 problems would take minutes and gigabytes.
    hostile = encode(document(artefacts=[])).replace(b"[]", b"[" + b"{}," * 100_000 + b"{}]")
    began = time.process_time()
    with pytest.raises(ManifestError) as caught:
        parse(hostile)
    assert time.process_time() - began < 20
    assert len(caught.value.problems) == MOST_PROBLEMS + 1
    assert caught.value.problems[-1] == "manifest: has more than 10,000 problems"


# The schema itself.


def test_the_schema_is_of_draft_2020_12_and_lists_words_and_members_in_order() -> None:
    whole = schema("manifest.v1")
    assert whole["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(whole)
    artefact = whole["$defs"]["artefact"]["properties"]
    assert tuple(whole["properties"]["channel"]["enum"]) == CHANNELS
    assert tuple(artefact["format"]["enum"]) == FORMATS
    assert list(whole["properties"]) == list(document())
    assert list(artefact) == list(entry())
